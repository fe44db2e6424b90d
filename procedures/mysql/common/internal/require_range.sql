-- require_range: refuse a number outside its limits; NULL passes and means the default.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_range(
    IN p_argument varchar(200) CHARACTER SET utf8mb4, IN p_value bigint, IN p_low bigint, IN p_high bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    IF p_value NOT BETWEEN p_low AND p_high THEN
        CALL imq_raise_error('invalid_argument', CONCAT(p_argument, ': must be ', FORMAT(p_low, 0, 'en_US'), ' to ',
            FORMAT(p_high, 0, 'en_US')));
    END IF;
END

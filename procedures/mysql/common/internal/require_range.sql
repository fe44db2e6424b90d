-- require_range: refuse a number outside its limits; NULL passes and means the default.
-- Arguments:   p_argument (its name in the contract), p_value, p_low, p_high
-- Returns:     nothing
-- Errors:      50002 invalid_argument
-- Transaction: reads nothing
-- Example:     CALL mq_require_range('size', 10, 1, 10000);

DROP PROCEDURE IF EXISTS mq_require_range;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_require_range(
    IN p_argument varchar(200) CHARACTER SET utf8mb4,
    IN p_value bigint,
    IN p_low bigint,
    IN p_high bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    IF p_value NOT BETWEEN p_low AND p_high THEN
        CALL mq_raise_error('invalid_argument', CONCAT(p_argument, ': must be ', FORMAT(p_low, 0, 'en_US'), ' to ',
            FORMAT(p_high, 0, 'en_US')));
    END IF;
END//

DELIMITER ;

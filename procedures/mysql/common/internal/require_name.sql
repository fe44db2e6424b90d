-- require_name: refuse a type, key or name that is not 1 to 200 characters long.
-- Arguments:   p_argument (its name in the contract), p_value, p_optional (1: NULL is allowed)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_name(
    IN p_argument varchar(200) CHARACTER SET utf8mb4, IN p_value longtext CHARACTER SET utf8mb4, IN p_optional tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    IF NOT COALESCE(CHAR_LENGTH(p_value) BETWEEN 1 AND 200, p_optional) THEN
        CALL imq_raise_error('invalid_argument', CONCAT(p_argument, ': must be 1 to 200 characters'));
    END IF;
END

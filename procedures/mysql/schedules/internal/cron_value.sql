-- cron_value: the number of a value or name in a cron expression.
-- Arguments:   p_value (digits, or a name in capitals), p_low (the number of the first name), p_names (three letters per
--              name; NULL: the field has no names)
-- Returns:     p_number; NULL when there is no such name

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_cron_value(
    IN p_value varchar(200) CHARACTER SET utf8mb4, IN p_low int, IN p_names varchar(60) CHARACTER SET ascii,
    OUT p_number int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_place int DEFAULT LOCATE(CAST(p_value AS binary), CAST(p_names AS binary)) - 1;
    IF p_value REGEXP '^[0-9]{1,2}\\z' THEN
        SET p_number = p_value;
    ELSE
        SET p_number = IF(v_place >= 0 AND v_place % 3 = 0, p_low + v_place DIV 3, NULL);
    END IF;
END

-- next_minute: the first minute of a day that a cron expression matches.
-- Arguments:   p_minutes and p_hours (of read_cron), p_from and p_until (minutes since midnight, inclusive)
-- Returns:     p_found: minutes since midnight; NULL: none

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_next_minute(
    IN p_minutes varchar(60) CHARACTER SET ascii, IN p_hours varchar(60) CHARACTER SET ascii, IN p_from bigint,
    IN p_until bigint, OUT p_found bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_hour int DEFAULT p_from DIV 60;
    DECLARE v_begin int DEFAULT p_from % 60;
    DECLARE v_place int;
    SET p_found = NULL;
    WHILE p_found IS NULL AND v_hour <= LEAST(p_until, 1439) DIV 60 AND p_until >= 0 DO
        SET v_place = IF(SUBSTRING(p_hours, v_hour + 1, 1) = '1', LOCATE('1', p_minutes, v_begin + 1), 0);
        IF v_place > 0 AND v_hour * 60 + v_place - 1 <= p_until THEN
            SET p_found = v_hour * 60 + v_place - 1;
        END IF;
        SET v_hour = v_hour + 1, v_begin = 0;
    END WHILE;
END

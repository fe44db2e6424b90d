-- find_change: when a time zone changes its UTC offset.
-- Arguments:   p_zone, p_from and p_until (minutes since 1970-01-01 00:00 UTC, at most three days apart)
-- Returns:     p_change: the first minute with the UTC offset of p_until; NULL: the offset does not change

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_find_change(
    IN p_zone varchar(200) CHARACTER SET utf8mb4, IN p_from bigint, IN p_until bigint, OUT p_change bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_first, v_minutes, v_found int;
    DECLARE v_before bigint DEFAULT p_from;
    DECLARE v_middle bigint;
    CALL imq_zone_minutes(p_zone, p_from, v_first);
    CALL imq_zone_minutes(p_zone, p_until, v_minutes);
    SET p_change = IF(v_first = v_minutes, NULL, p_until);
    WHILE p_change - v_before > 1 DO
        SET v_middle = (v_before + p_change) DIV 2;
        CALL imq_zone_minutes(p_zone, v_middle, v_found);
        IF v_found = v_minutes THEN
            SET p_change = v_middle;
        ELSE
            SET v_before = v_middle;
        END IF;
    END WHILE;
END

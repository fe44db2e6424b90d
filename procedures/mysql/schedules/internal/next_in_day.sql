-- next_in_day: the first time of a date that a cron expression matches.
-- Arguments:   p_minutes, p_hours and p_real_time (of read_cron), p_zone, p_day (a date that matches: days since
--              1970-01-01), p_minute (the earliest result: minutes since 1970-01-01 00:00 UTC)
-- Returns:     p_found: minutes since 1970-01-01 00:00 UTC; NULL: no time of this date
--
-- When the clocks are set forward, times in the missing hour occur once, at the change. When they are set back, times in
-- the repeated hour occur once. With * as the hour, no time is moved or skipped: a message every ten minutes is still
-- sent every ten minutes, as in Vixie cron.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_next_in_day(
    IN p_minutes varchar(60) CHARACTER SET ascii, IN p_hours varchar(60) CHARACTER SET ascii, IN p_real_time tinyint,
    IN p_zone varchar(200) CHARACTER SET utf8mb4, IN p_day int, IN p_minute bigint, OUT p_found bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
whole: BEGIN
    DECLARE v_midnight bigint DEFAULT p_day * 1440;
    DECLARE v_before, v_after int;
    DECLARE v_change bigint;
    -- Every UTC offset is less than a day: the whole date lies between these two.
    CALL imq_zone_minutes(p_zone, v_midnight - 1440, v_before);
    CALL imq_zone_minutes(p_zone, v_midnight + 2880, v_after);
    IF v_before <> v_after THEN
        CALL imq_find_change(p_zone, v_midnight - 1440, v_midnight + 2880, v_change);
    END IF;
    CALL imq_next_minute(p_minutes, p_hours, GREATEST(p_minute + v_before - v_midnight, 0),
        COALESCE(v_change - 1 + v_before - v_midnight, 1439), p_found);
    IF p_found IS NOT NULL THEN
        SET p_found = v_midnight + p_found - v_before;
    END IF;
    IF p_found IS NOT NULL OR v_change IS NULL THEN
        LEAVE whole;
    END IF;

    IF v_after > v_before AND NOT p_real_time AND p_minute <= v_change THEN
        CALL imq_next_minute(p_minutes, p_hours, GREATEST(v_change + v_before - v_midnight, 0),
            v_change + v_after - 1 - v_midnight, p_found);
        IF p_found IS NOT NULL THEN
            SET p_found = v_change;
            LEAVE whole;
        END IF;
    END IF;

    CALL imq_next_minute(p_minutes, p_hours, GREATEST(GREATEST(p_minute, v_change) + v_after - v_midnight,
        IF(p_real_time, 0, v_change + v_before - v_midnight), 0), 1439, p_found);
    SET p_found = v_midnight + p_found - v_after;
END

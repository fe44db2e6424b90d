-- next_time: the first time of a cron expression after a given time.
-- Arguments:   p_cron, p_after (UTC), p_zone (one that the server knows)
-- Returns:     p_next_at; NULL when no date in the next 50 years matches

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_next_time(
    IN p_cron longtext CHARACTER SET utf8mb4, IN p_after datetime(6), IN p_zone varchar(200) CHARACTER SET utf8mb4,
    OUT p_next_at datetime(6)
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_epoch datetime DEFAULT '1970-01-01';
    DECLARE v_seconds bigint DEFAULT TIMESTAMPDIFF(SECOND, c_epoch, p_after);
    DECLARE v_minute bigint DEFAULT v_seconds DIV 60 + 1;
    DECLARE v_every, v_found bigint;
    DECLARE v_minutes, v_hours, v_days, v_months, v_weekdays varchar(60) CHARACTER SET ascii;
    DECLARE v_both_days, v_real_time tinyint;
    DECLARE v_day, v_ahead int;
    CALL imq_read_cron(p_cron, v_every, v_minutes, v_hours, v_days, v_months, v_weekdays, v_both_days, v_real_time);
    IF v_every IS NOT NULL THEN
        SET p_next_at = c_epoch + INTERVAL (v_seconds DIV v_every + 1) * v_every SECOND;
    ELSE
        CALL imq_zone_minutes(p_zone, v_minute, v_ahead);
        SET v_day = FLOOR((v_minute + v_ahead) / 1440);
        days: LOOP
            CALL imq_next_day(v_days, v_months, v_weekdays, v_both_days, v_day, v_day);
            IF v_day IS NULL THEN
                LEAVE days;
            END IF;
            CALL imq_next_in_day(v_minutes, v_hours, v_real_time, p_zone, v_day, v_minute, v_found);
            IF v_found IS NOT NULL THEN
                LEAVE days;
            END IF;
            SET v_day = v_day + 1;
        END LOOP;
        SET p_next_at = c_epoch + INTERVAL v_found MINUTE;
    END IF;
END

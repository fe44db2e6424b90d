-- read_cron: parse a cron expression.
-- Arguments:   p_cron (five fields, a short form such as @daily, or @every and seconds)
-- Returns:     p_every (seconds; NULL for five fields); p_minutes, p_hours, p_days, p_months and p_weekdays (see
--              read_cron_field), p_both_days (a date must match both days and weekdays, not only one of them),
--              p_real_time (the hour is *: see next_in_day)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_read_cron(
    IN p_cron longtext CHARACTER SET utf8mb4, OUT p_every bigint, OUT p_minutes varchar(60) CHARACTER SET ascii,
    OUT p_hours varchar(60) CHARACTER SET ascii, OUT p_days varchar(60) CHARACTER SET ascii,
    OUT p_months varchar(60) CHARACTER SET ascii, OUT p_weekdays varchar(60) CHARACTER SET ascii,
    OUT p_both_days tinyint, OUT p_real_time tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
whole: BEGIN
    DECLARE v_cron, v_days, v_weekdays varchar(200) CHARACTER SET utf8mb4;
    CALL imq_require_name('cron', p_cron, 0);
    SET v_cron = TRIM(REGEXP_REPLACE(p_cron, '[ \t]+', ' '));
    IF v_cron REGEXP '^@every [0-9]{1,9}\\z' THEN
        SET p_every = SUBSTRING(v_cron, 8);
        IF p_every BETWEEN 1 AND 315360000 THEN
            LEAVE whole;
        END IF;
    END IF;
    -- Compared as bytes: a collation may equate other letters with these.
    SET p_every = NULL, v_cron = CASE CAST(LOWER(v_cron) AS binary)
        WHEN '@hourly' THEN '0 * * * *'
        WHEN '@daily' THEN '0 0 * * *'
        WHEN '@midnight' THEN '0 0 * * *'
        WHEN '@weekly' THEN '0 0 * * 0'
        WHEN '@monthly' THEN '0 0 1 * *'
        WHEN '@yearly' THEN '0 0 1 1 *'
        WHEN '@annually' THEN '0 0 1 1 *'
        ELSE v_cron
    END;
    IF CHAR_LENGTH(v_cron) - CHAR_LENGTH(REPLACE(v_cron, ' ', '')) <> 4 THEN
        CALL imq_raise_error('invalid_argument', 'cron: must be five fields (minute, hour, day, month, day of week), @daily or similar, '
            'or @every and seconds');
    END IF;
    SET v_days = SUBSTRING_INDEX(SUBSTRING_INDEX(v_cron, ' ', 3), ' ', -1), v_weekdays = SUBSTRING_INDEX(v_cron, ' ', -1);
    CALL imq_read_cron_field('minute', SUBSTRING_INDEX(v_cron, ' ', 1), 0, 59, NULL, p_minutes);
    SET v_cron = SUBSTRING(v_cron, LOCATE(' ', v_cron) + 1);
    CALL imq_read_cron_field('hour', SUBSTRING_INDEX(v_cron, ' ', 1), 0, 23, NULL, p_hours);
    CALL imq_read_cron_field('day of month', v_days, 1, 31, NULL, p_days);
    CALL imq_read_cron_field('month', SUBSTRING_INDEX(SUBSTRING_INDEX(v_cron, ' ', 3), ' ', -1), 1, 12,
        'JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC', p_months);
    CALL imq_read_cron_field('day of week', v_weekdays, 0, 7, 'SUNMONTUEWEDTHUFRISAT', p_weekdays);
    IF RIGHT(p_weekdays, 1) = '1' THEN
        SET p_weekdays = INSERT(p_weekdays, 1, 1, '1');
    END IF;
    SET p_both_days = LEFT(v_days, 1) = '*' OR LEFT(v_weekdays, 1) = '*', p_real_time = LEFT(v_cron, 1) = '*';
END

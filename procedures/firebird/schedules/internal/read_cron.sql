-- read_cron: parse a cron expression.
-- Arguments:   p_cron (five fields, a short form such as @daily, or @every and seconds)
-- Returns:     every (seconds; NULL for five fields); minutes, hours, days, months and weekdays (see read_cron_field),
--              both_days (1: a date must match both days and weekdays, not only one of them), real_time (1: the hour is
--              *: see next_in_day)
CREATE OR ALTER PROCEDURE imq_read_cron (p_cron mq_argument)
RETURNS (
    every bigint, minutes varchar(60) CHARACTER SET ASCII, hours varchar(60) CHARACTER SET ASCII,
    days varchar(60) CHARACTER SET ASCII, months varchar(60) CHARACTER SET ASCII,
    weekdays varchar(60) CHARACTER SET ASCII, both_days smallint, real_time smallint
)
AS
DECLARE v_cron mq_argument; DECLARE v_left mq_argument; DECLARE v_field mq_argument;
DECLARE v_n integer = 0;
DECLARE v_minute mq_name; DECLARE v_hour mq_name; DECLARE v_day mq_name; DECLARE v_month mq_name;
DECLARE v_weekday mq_name;
BEGIN
    -- Blanks around it do no harm.
    v_field = IIF(CHAR_LENGTH(p_cron) > 200, p_cron, TRIM(TRAILING FROM p_cron));
    EXECUTE PROCEDURE imq_require_name('cron', v_field, 0);
    v_cron = TRIM(REPLACE(p_cron, ASCII_CHAR(9), ' '));
    v_left = TRIM(CASE LOWER(v_cron)
        WHEN '@hourly' THEN '0 * * * *'
        WHEN '@daily' THEN '0 0 * * *'
        WHEN '@midnight' THEN '0 0 * * *'
        WHEN '@weekly' THEN '0 0 * * 0'
        WHEN '@monthly' THEN '0 0 1 * *'
        WHEN '@yearly' THEN '0 0 1 1 *'
        WHEN '@annually' THEN '0 0 1 1 *'
        ELSE v_cron
    END);
    WHILE (CHAR_LENGTH(v_left) > 0) DO
    BEGIN
        v_field = LEFT(v_left, POSITION(' ' IN v_left || ' ') - 1);
        v_left = TRIM(LEADING FROM SUBSTRING(v_left FROM CHAR_LENGTH(v_field) + 1));
        v_n = v_n + 1;
        v_minute = IIF(v_n = 1, v_field, v_minute);
        v_hour = IIF(v_n = 2, v_field, v_hour);
        v_day = IIF(v_n = 3, v_field, v_day);
        v_month = IIF(v_n = 4, v_field, v_month);
        v_weekday = IIF(v_n = 5, v_field, v_weekday);
    END
    IF (v_n = 2 AND LOWER(v_minute) = '@every' AND v_hour SIMILAR TO '[0-9]{1,9}') THEN
    BEGIN
        every = v_hour;
        IF (every BETWEEN 1 AND 315360000) THEN
            EXIT;
    END
    IF (v_n <> 5) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'cron: must be five fields (minute, hour, day of month, month, day of '
            || 'week), @hourly, @daily, @weekly, @monthly or @yearly, or @every and 1 to 315,360,000 seconds');
    minutes = imq_read_cron_field('minute', v_minute, 0, 59, NULL);
    hours = imq_read_cron_field('hour', v_hour, 0, 23, NULL);
    days = imq_read_cron_field('day of month', v_day, 1, 31, NULL);
    months = imq_read_cron_field('month', v_month, 1, 12, 'JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC');
    weekdays = imq_read_cron_field('day of week', v_weekday, 0, 7, 'SUNMONTUEWEDTHUFRISAT');
    IF (RIGHT(weekdays, 1) = '1') THEN
        weekdays = OVERLAY(weekdays PLACING '1' FROM 1 FOR 1);
    both_days = IIF(v_day STARTING WITH '*' OR v_weekday STARTING WITH '*', 1, 0);
    real_time = IIF(v_hour STARTING WITH '*', 1, 0);
END

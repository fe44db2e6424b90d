-- next_time: the first time of a cron expression after a given time.
-- Arguments:   p_cron, p_after (UTC), p_zone (one that the server knows)
-- Returns:     the time in UTC; NULL when no date in the next 50 years matches
CREATE OR ALTER FUNCTION imq_next_time (p_cron mq_argument, p_after timestamp, p_zone mq_name)
RETURNS timestamp
AS
DECLARE c_epoch timestamp = '1970-01-01 00:00:00';
DECLARE v_every bigint; DECLARE v_seconds bigint; DECLARE v_minute bigint; DECLARE v_found bigint;
DECLARE v_minutes varchar(60) CHARACTER SET ASCII; DECLARE v_hours varchar(60) CHARACTER SET ASCII;
DECLARE v_days varchar(60) CHARACTER SET ASCII; DECLARE v_months varchar(60) CHARACTER SET ASCII;
DECLARE v_weekdays varchar(60) CHARACTER SET ASCII;
DECLARE v_both_days smallint; DECLARE v_real_time smallint;
DECLARE v_day integer;
BEGIN
    EXECUTE PROCEDURE imq_read_cron(p_cron)
        RETURNING_VALUES v_every, v_minutes, v_hours, v_days, v_months, v_weekdays, v_both_days, v_real_time;
    v_seconds = DATEDIFF(SECOND FROM c_epoch TO p_after);
    IF (v_every IS NOT NULL) THEN
        RETURN DATEADD((v_seconds / v_every + 1) * v_every SECOND TO c_epoch);
    v_minute = v_seconds / 60 + 1;
    v_day = FLOOR((v_minute + imq_zone_minutes(p_zone, v_minute)) / 1440e0);
    WHILE (v_found IS NULL) DO
    BEGIN
        v_day = imq_next_day(v_days, v_months, v_weekdays, v_both_days, v_day);
        IF (v_day IS NULL) THEN
            RETURN NULL;
        v_found = imq_next_in_day(v_minutes, v_hours, v_real_time, p_zone, v_day, v_minute);
        v_day = v_day + 1;
    END
    RETURN DATEADD(v_found MINUTE TO c_epoch);
END

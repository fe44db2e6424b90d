-- next_in_day: the first time of a date that a cron expression matches.
-- Arguments:   p_minutes, p_hours and p_real_time (of read_cron), p_zone, p_day (a date that matches: days since
--              1970-01-01), p_minute (the earliest result: minutes since 1970-01-01 00:00 UTC)
-- Returns:     minutes since 1970-01-01 00:00 UTC; NULL: no time of this date
--
-- When the clocks are set forward, times in the missing hour occur once, at the change. When they are set back, times in
-- the repeated hour occur once. With * as the hour, no time is moved or skipped: a message every ten minutes is still
-- sent every ten minutes, as in Vixie cron.
CREATE OR ALTER FUNCTION imq_next_in_day (
    p_minutes varchar(60) CHARACTER SET ASCII, p_hours varchar(60) CHARACTER SET ASCII, p_real_time smallint,
    p_zone mq_name, p_day integer, p_minute bigint
)
RETURNS bigint
AS
DECLARE v_midnight bigint; DECLARE v_change bigint; DECLARE v_found bigint;
DECLARE v_before integer; DECLARE v_after integer;
BEGIN
    -- Every UTC offset is less than a day: the whole date lies between these two.
    v_midnight = CAST(p_day AS bigint) * 1440;
    v_before = imq_zone_minutes(p_zone, v_midnight - 1440);
    v_after = imq_zone_minutes(p_zone, v_midnight + 2880);
    v_change = imq_find_change(p_zone, v_midnight - 1440, v_midnight + 2880);
    v_found = imq_next_minute(p_minutes, p_hours, MAXVALUE(p_minute + v_before - v_midnight, 0),
        COALESCE(v_change - 1 + v_before - v_midnight, 1439));
    IF (v_found IS NOT NULL) THEN
        RETURN v_midnight + v_found - v_before;
    IF (v_change IS NULL) THEN
        RETURN NULL;

    IF (v_after > v_before AND p_real_time = 0 AND p_minute <= v_change) THEN
    BEGIN
        v_found = imq_next_minute(p_minutes, p_hours, MAXVALUE(v_change + v_before - v_midnight, 0),
            v_change + v_after - 1 - v_midnight);
        IF (v_found IS NOT NULL) THEN
            RETURN v_change;
    END

    v_found = imq_next_minute(p_minutes, p_hours, MAXVALUE(MAXVALUE(p_minute, v_change) + v_after - v_midnight,
        IIF(p_real_time = 1, 0, v_change + v_before - v_midnight), 0), 1439);
    RETURN v_midnight + v_found - v_after;
END

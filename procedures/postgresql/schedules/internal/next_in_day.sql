-- next_in_day: the first time of a date that a cron expression matches.
-- Arguments: p_day (a date that matches: days since 1970-01-01), p_minute (the earliest result: minutes since
--     1970-01-01 00:00 UTC)
-- Returns: minutes since 1970-01-01 00:00 UTC; NULL: no time of this date
--
-- When the clocks are set forward, times in the missing hour occur once, at the change. When they are set back, times in
-- the repeated hour occur once. With * as the hour, no time is moved or skipped: a message every ten minutes is still
-- sent every ten minutes, as in Vixie cron.
CREATE OR REPLACE FUNCTION mq_internal.next_in_day(
    p_cron record, p_zone text, p_day integer, p_minute bigint
) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_midnight bigint := p_day * 1440::bigint;
    -- Every UTC offset is less than a day: the whole date lies between these two.
    v_before integer := mq_internal.zone_minutes(p_zone, v_midnight - 1440);
    v_after integer := mq_internal.zone_minutes(p_zone, v_midnight + 2880);
    v_change bigint := mq_internal.find_change(p_zone, v_midnight - 1440, v_midnight + 2880);
    v_found bigint;
BEGIN
    v_found := mq_internal.next_minute(p_cron.minutes, p_cron.hours, greatest(p_minute + v_before - v_midnight, 0),
        coalesce(v_change - 1 + v_before - v_midnight, 1439));
    IF v_found IS NOT NULL THEN
        RETURN v_midnight + v_found - v_before;
    ELSIF v_change IS NULL THEN
        RETURN NULL;
    END IF;

    IF v_after > v_before AND NOT p_cron.real_time AND p_minute <= v_change AND mq_internal.next_minute(p_cron.minutes, p_cron.hours,
        greatest(v_change + v_before - v_midnight, 0), v_change + v_after - 1 - v_midnight) IS NOT NULL
    THEN
        RETURN v_change;
    END IF;

    v_found := mq_internal.next_minute(p_cron.minutes, p_cron.hours, greatest(greatest(p_minute, v_change) + v_after - v_midnight,
        CASE WHEN p_cron.real_time THEN 0 ELSE v_change + v_before - v_midnight END, 0), 1439);
    RETURN v_midnight + v_found - v_after;
END
$$;

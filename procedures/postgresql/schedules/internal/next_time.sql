-- next_time: the first time of a cron expression after a given time.
-- Arguments: p_zone (one that the server knows)
CREATE OR REPLACE FUNCTION mq_internal.next_time(p_cron text, p_after timestamptz, p_zone text) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
    v_cron record := mq_internal.read_cron(p_cron);
    v_seconds numeric := extract(epoch FROM p_after);
    v_minute bigint := floor(v_seconds / 60) + 1;
    v_day integer;
    v_found bigint;
BEGIN
    IF v_cron.every IS NOT NULL THEN
        RETURN to_timestamp((floor(v_seconds / v_cron.every) + 1) * v_cron.every);
    END IF;
    v_day := floor((v_minute + mq_internal.zone_minutes(p_zone, v_minute)) / 1440.0);
    LOOP
        v_day := mq_internal.next_day(v_cron, v_day);
        v_found := mq_internal.next_in_day(v_cron, p_zone, v_day, v_minute);
        EXIT WHEN v_day IS NULL OR v_found IS NOT NULL;
        v_day := v_day + 1;
    END LOOP;
    RETURN to_timestamp(v_found * 60);
END
$$;

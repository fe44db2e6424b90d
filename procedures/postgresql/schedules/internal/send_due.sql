-- send_due: send the messages of those schedules of a type that are due.
-- Arguments:   p_type, p_size (at most so many schedules)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; skips schedules that another transaction has locked
-- Example:     SELECT mq.send_due('report', 100);
--
-- The first claim of each second calls this. Whoever locks the row of a schedule sends its message and sets its next time in one
-- transaction. So each time is sent once, whoever dies. Times that have passed meanwhile are made up for by one message.

CREATE OR REPLACE FUNCTION mq.send_due(
    p_type text,
    p_size bigint
) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    -- A time that was set by a clock so far ahead is set again; after a smaller step back nothing is sent twice, as in cron.
    c_set_back CONSTANT interval := '3 hours';
    v_now timestamptz := clock_timestamp();
    v_schedule mq.schedule;
    v_next_at timestamptz;
BEGIN
    FOR v_schedule IN
        SELECT *
        FROM mq.schedule
        WHERE type = p_type AND (next_at <= v_now OR moved_at > v_now + c_set_back)
        ORDER BY type, next_at
        LIMIT p_size
        FOR UPDATE SKIP LOCKED
    LOOP
        IF v_schedule.next_at <= v_now AND NOT mq.last_lives(v_schedule) THEN
            PERFORM mq.send_occurrence(v_schedule, v_schedule.next_at);
        END IF;
        BEGIN
            v_next_at := mq.next_time(v_schedule.cron, v_now, v_schedule.time_zone);
        EXCEPTION WHEN invalid_parameter_value THEN
            -- Restored to a server that does not know the zone: claims must go on. queue_health names the schedule.
            v_next_at := NULL;
        END;
        UPDATE mq.schedule SET next_at = v_next_at, moved_at = v_now WHERE name = v_schedule.name;
    END LOOP;
END
$$;

-- send_due: send the messages of the schedules of a type that are due.
-- Transaction: skips schedules that another transaction has locked
--
-- The first claim of each second calls this. The call locks the row of a schedule, sends its message and sets its next
-- time in one transaction. So each time is sent once, even after a crash. One message makes up for all times that have
-- passed.
CREATE OR REPLACE FUNCTION mq_internal.send_due(p_type text, p_size bigint) RETURNS void
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    -- After the clock was set back by more than this, the next time is set again. After a smaller step nothing is sent
    -- twice, as in cron.
    c_set_back CONSTANT interval := '3 hours';
    v_now timestamptz := clock_timestamp();
    v_schedule mq.schedule;
    v_next_at timestamptz;
BEGIN
    FOR v_schedule IN
        SELECT * FROM mq.schedule
        WHERE type = p_type AND (next_at <= v_now OR moved_at > v_now + c_set_back)
        ORDER BY type, next_at
        LIMIT p_size
        FOR UPDATE SKIP LOCKED
    LOOP
        IF v_schedule.next_at <= v_now AND NOT mq_internal.last_lives(v_schedule) THEN
            PERFORM mq_internal.send_occurrence(v_schedule, v_schedule.next_at);
        END IF;
        BEGIN
            v_next_at := mq_internal.next_time(v_schedule.cron, v_now, v_schedule.time_zone);
        EXCEPTION WHEN invalid_parameter_value THEN
            -- The database may have been restored to a server that does not know the zone. Claims must still work;
            -- queue_health reports the schedule.
            v_next_at := NULL;
        END;
        UPDATE mq.schedule SET next_at = v_next_at, moved_at = v_now WHERE name = v_schedule.name;
    END LOOP;
END
$$;

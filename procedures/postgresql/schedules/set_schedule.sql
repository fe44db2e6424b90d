-- set_schedule: send a message at each time of a cron expression; a call with an existing name changes that schedule.
-- Arguments:   p_name, p_type, p_cron (see next_occurrence), p_body (up to 16 MiB), p_time_zone (NULL: UTC), p_headers
--              (up to 64 KiB), p_priority (-32,768 to 32,767; NULL: 0), p_group_key, p_overlap (a time is skipped while
--              the last message is new; 0: also while it is active; NULL: 1); names and keys have 1 to 200 characters
-- Returns:     created (1 when the schedule is new), next_at
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one name wait for each other
-- Example:     SELECT * FROM mq.set_schedule('nightly', 'report', '30 2 * * *', '{}', p_time_zone => 'Europe/Paris');
--
-- A schedule with unchanged cron and time zone keeps its next time. So a program can call this at each start: no due time
-- is lost or repeated.
CREATE OR REPLACE FUNCTION mq.set_schedule(
    p_name text, p_type text, p_cron text, p_body text, p_time_zone text DEFAULT NULL, p_headers text DEFAULT NULL,
    p_priority bigint DEFAULT NULL, p_group_key text DEFAULT NULL, p_overlap bigint DEFAULT NULL, OUT created smallint,
    OUT next_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_zone text := coalesce(p_time_zone, 'UTC');
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    PERFORM mq_internal.require_name('type', p_type, false);
    IF p_body IS NULL OR octet_length(p_body) > 16777216 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    PERFORM mq_internal.require_zone(p_time_zone);
    IF octet_length(p_headers) > 65536 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'headers: must be a text of up to 64 KiB (65,536 bytes)');
    END IF;
    PERFORM mq_internal.require_headers(p_headers);
    PERFORM mq_internal.require_range('priority', p_priority, -32768, 32767);
    PERFORM mq_internal.require_name('group_key', p_group_key, true);
    PERFORM mq_internal.require_range('overlap', p_overlap, 0, 1);
    next_at := mq_internal.next_time(p_cron, v_now, v_zone);
    IF next_at IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'cron: no date matches in the next 50 years');
    END IF;

    INSERT INTO mq.schedule (name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at, moved_at)
    VALUES (p_name, p_type, p_cron, v_zone, p_body, p_headers, coalesce(p_priority, 0), p_group_key, coalesce(p_overlap, 1) = 1,
        set_schedule.next_at, v_now)
    ON CONFLICT (name) DO NOTHING;
    created := CASE WHEN FOUND THEN 1 ELSE 0 END;
    IF created = 0 THEN
        UPDATE mq.schedule AS s
        SET type = p_type,
            cron = p_cron,
            time_zone = v_zone,
            body = p_body,
            headers = p_headers,
            priority = coalesce(p_priority, 0),
            group_key = p_group_key,
            overlap = coalesce(p_overlap, 1) = 1,
            next_at = CASE WHEN s.cron = p_cron AND s.time_zone = v_zone THEN s.next_at END,
            moved_at = CASE WHEN s.cron = p_cron AND s.time_zone = v_zone THEN s.moved_at ELSE v_now END
        WHERE s.name = p_name;
        UPDATE mq.schedule AS s
        SET next_at = coalesce(s.next_at, set_schedule.next_at)
        WHERE s.name = p_name
        RETURNING s.next_at INTO next_at;
    END IF;
    PERFORM mq_internal.wake(p_type);
END
$$;

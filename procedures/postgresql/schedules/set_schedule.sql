-- set_schedule: send a message at each time of a cron expression; a call with an existing name changes that schedule.
-- Arguments:   p_name, p_type, p_cron (see next_occurrence), p_body (up to 16 MiB), p_options (a flat JSON object):
--              time_zone (default UTC), headers (a text of up to 64 KiB), priority (-32,768 to 32,767; 0), group_key,
--              overlap (1: a time is skipped while the last message is new; 0: also while it is active; 1); names and keys
--              have 1 to 200 characters
-- Returns:     created (1 when the schedule is new), next_at
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one name wait for each other
-- Example:     SELECT * FROM mq.set_schedule('nightly', 'report', '30 2 * * *', '{}', '{"time_zone": "Europe/Paris"}');
--
-- A schedule with unchanged cron and time zone keeps its next time. So a program can call this at each start: no due time
-- is lost or repeated.
CREATE OR REPLACE FUNCTION mq.set_schedule(
    p_name text, p_type text, p_cron text, p_body text, p_options text DEFAULT NULL, OUT created smallint,
    OUT next_at timestamptz
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_set jsonb := mq_internal.read_options(p_options, 'options', '{"time_zone": "text", "headers": "text",
        "priority": [-32768, 32767], "group_key": "text", "overlap": [0, 1]}');
    v_zone text := coalesce(v_set ->> 'time_zone', 'UTC');
    v_headers text := v_set ->> 'headers';
    v_priority smallint := coalesce(v_set ->> 'priority', '0');
    v_group_key text := v_set ->> 'group_key';
    v_overlap boolean := coalesce(v_set ->> 'overlap', '1') = '1';
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    PERFORM mq_internal.require_name('type', p_type, false);
    IF p_body IS NULL OR octet_length(p_body) > 16777216 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    PERFORM mq_internal.require_zone(v_zone);
    IF octet_length(v_headers) > 65536 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'headers: must be a text of up to 64 KiB (65,536 bytes)');
    END IF;
    PERFORM mq_internal.require_headers(v_headers);
    PERFORM mq_internal.require_name('group_key', v_group_key, true);
    next_at := mq_internal.next_time(p_cron, v_now, v_zone);
    IF next_at IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'cron: no date matches in the next 50 years');
    END IF;

    INSERT INTO mq.schedule (name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at, moved_at)
    VALUES (p_name, p_type, p_cron, v_zone, p_body, v_headers, v_priority, v_group_key, v_overlap,
        set_schedule.next_at, v_now)
    ON CONFLICT (name) DO NOTHING;
    created := CASE WHEN FOUND THEN 1 ELSE 0 END;
    IF created = 0 THEN
        UPDATE mq.schedule AS s
        SET type = p_type,
            cron = p_cron,
            time_zone = v_zone,
            body = p_body,
            headers = v_headers,
            priority = v_priority,
            group_key = v_group_key,
            overlap = v_overlap,
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

-- list_schedules: list the schedules with their last and next times.
-- Arguments:   p_type (1 to 200 characters; NULL: all), p_body_length (characters of each body and its headers, 0 to
--              16,777,216; NULL: all)
-- Returns:     name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at (NULL: the schedule has
--              stopped), last_at, last_id (NULL: nothing was sent yet); by name
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT name, next_at FROM mq.list_schedules();
CREATE OR REPLACE FUNCTION mq.list_schedules(
    p_type text DEFAULT NULL,
    p_body_length bigint DEFAULT NULL
) RETURNS TABLE (
    name text, type text, cron text, time_zone text, body text, headers text, priority integer, group_key text,
    overlap smallint, next_at timestamptz, last_at timestamptz, last_id bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
#variable_conflict use_column
DECLARE
    -- The longest body.
    v_length integer := coalesce(p_body_length, 16777216);
BEGIN
    PERFORM mq_internal.require_name('type', p_type, true);
    PERFORM mq_internal.require_range('body_length', p_body_length, 0, 16777216);
    RETURN QUERY
        SELECT s.name, s.type, s.cron, s.time_zone, left(s.body, v_length), left(s.headers, v_length), s.priority::integer,
            s.group_key, s.overlap::integer::smallint, s.next_at, s.last_at, s.last_id
        FROM mq.schedule AS s
        WHERE p_type IS NULL OR s.type = p_type
        ORDER BY s.name;
END
$$;

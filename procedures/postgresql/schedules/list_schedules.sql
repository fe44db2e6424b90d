-- list_schedules: list the schedules with their last and next times.
-- Arguments:   p_type (1 to 200 characters; NULL: all)
-- Returns:     name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at (NULL: the schedule has
--              stopped), last_at, last_id (NULL: nothing was sent yet); by name
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT name, next_at FROM mq.list_schedules();

CREATE OR REPLACE FUNCTION mq.list_schedules(
    p_type text DEFAULT NULL
) RETURNS TABLE (
    name text,
    type text,
    cron text,
    time_zone text,
    body text,
    headers text,
    priority integer,
    group_key text,
    overlap smallint,
    next_at timestamptz,
    last_at timestamptz,
    last_id bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM mq.require_name('type', p_type, true);
    RETURN QUERY
        SELECT s.name, s.type, s.cron, s.time_zone, s.body, s.headers, s.priority::integer, s.group_key,
            s.overlap::integer::smallint, s.next_at, s.last_at, s.last_id
        FROM mq.schedule AS s
        WHERE p_type IS NULL OR s.type = p_type
        ORDER BY s.name;
END
$$;

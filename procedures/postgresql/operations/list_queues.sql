-- list_queues: list the policies of queues.
-- Arguments:   p_type (1 to 200 characters; NULL: all for which set_queue, pause or resume was called)
-- Returns:     one row per type with the columns of set_queue; a given p_type without a policy returns the defaults
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT type, max_attempts, on_complete, paused FROM mq.list_queues();
CREATE OR REPLACE FUNCTION mq.list_queues(p_type text DEFAULT NULL) RETURNS TABLE (
    type text, lease_seconds integer, max_attempts integer, backoff_seconds integer, backoff_max_seconds integer,
    on_complete text, ordered smallint, notify smallint, max_active integer, rate integer, rate_seconds integer,
    group_max_active integer, group_rate integer, group_rate_seconds integer, paused smallint, ring smallint,
    fair smallint, dead_stops_group smallint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
#variable_conflict use_column
BEGIN
    PERFORM mq_internal.require_name('type', p_type, true);
    RETURN QUERY
        SELECT q.type, q.lease_seconds, q.max_attempts::integer, q.backoff_seconds, q.backoff_max_seconds, q.on_complete,
            q.ordered::integer::smallint, q.notify::integer::smallint, q.max_active, q.rate, q.rate_seconds,
            q.group_max_active, q.group_rate, q.group_rate_seconds, q.paused::integer::smallint,
            q.ring::integer::smallint, q.fair::integer::smallint, q.dead_stops_group::integer::smallint
        FROM (
            SELECT * FROM mq.queue WHERE p_type IS NULL AND type <> ''
            UNION ALL
            SELECT * FROM mq_internal.policy(p_type) WHERE p_type IS NOT NULL
        ) AS q
        ORDER BY q.type COLLATE "C";
END
$$;

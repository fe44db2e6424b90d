-- queue_stats: count each queue's messages by state; above 10,000 ready, delayed and dead are estimates.
-- Arguments:   p_type (1 to 200 characters; NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds (NULL: none is ready), estimated (1: ready,
--              delayed or dead is above 10,000; such a number is an estimate), paused (1: claims return nothing)
-- Errors:      50002 invalid_argument
-- Transaction: reads only, at most 10,000 index entries per number, and all claims; see estimate
-- Example:     SELECT * FROM mq.queue_stats();
CREATE OR REPLACE FUNCTION mq.queue_stats(p_type text DEFAULT NULL) RETURNS TABLE (
    type text, ready bigint, delayed bigint, active bigint, expired bigint, dead bigint,
    oldest_ready_seconds double precision, estimated smallint, paused smallint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    c_cap CONSTANT integer := 10000;
    v_now timestamptz := clock_timestamp();
BEGIN
    PERFORM mq_internal.require_name('type', p_type, true);
    RETURN QUERY
    WITH counts AS (
        SELECT c.type, c.what, CASE WHEN c.first <= c_cap OR c.what = 'batch' THEN c.first
                ELSE mq_internal.estimate(CASE c.what WHEN 'delayed' THEN 'due' ELSE c.what END, c.type, v_now) END AS first,
            CASE WHEN c.second <= c_cap OR c.what = 'batch' THEN c.second
                ELSE mq_internal.estimate('delayed', c.type, v_now) END AS second, c.oldest
        FROM (
            SELECT w.what, n.*
            FROM unnest(ARRAY['ready', 'grouped', 'delayed', 'batch', 'dead']) AS w (what)
            CROSS JOIN LATERAL mq_internal.count_types(w.what, p_type, c_cap, v_now) AS n
        ) AS c
        UNION ALL
        -- A type with only a policy also has a row, and so has a type that is given by name.
        SELECT q.type, 'policy', 0, 0, NULL FROM mq.queue AS q WHERE p_type IS NULL AND q.type <> '' OR q.type = p_type
        UNION ALL
        SELECT p_type, 'policy', 0, 0, NULL WHERE p_type IS NOT NULL
    ), totals AS (
        SELECT c.type, coalesce(q.paused, (mq_internal.policy('')).paused) AS paused,
            -- In a queue with groups the rows of ready are tickets.
            coalesce(max(c.first) FILTER (WHERE c.what = CASE WHEN q.grouped THEN 'grouped' ELSE 'ready' END), 0)
                + coalesce(max(c.first) FILTER (WHERE c.what = 'delayed'), 0) AS ready,
            coalesce(max(c.second) FILTER (WHERE c.what = 'delayed'), 0) AS delayed,
            coalesce(max(c.first) FILTER (WHERE c.what = 'batch'), 0) AS active,
            coalesce(max(c.second) FILTER (WHERE c.what = 'batch'), 0) AS expired,
            coalesce(max(c.first) FILTER (WHERE c.what = 'dead'), 0) AS dead,
            coalesce(min(c.oldest) FILTER (WHERE c.what = CASE WHEN q.grouped THEN 'grouped' ELSE 'ready' END),
                min(c.oldest) FILTER (WHERE c.what = 'delayed')) AS oldest
        FROM counts AS c
        -- For one type, read only its policy: there may be very many.
        LEFT JOIN (SELECT * FROM mq.queue WHERE p_type IS NULL OR type = p_type) AS q ON q.type = c.type
        GROUP BY c.type, q.paused
    )
    SELECT t.type, t.ready, t.delayed, t.active, t.expired, t.dead,
        -- greatest() ignores NULL: without ready messages there is no age.
        CASE WHEN t.oldest IS NOT NULL THEN greatest(extract(epoch FROM v_now - t.oldest), 0)::double precision END,
        (greatest(t.ready, t.delayed, t.dead) > c_cap)::integer::smallint, t.paused::integer::smallint
    FROM totals AS t
    ORDER BY t.type COLLATE "C";
END
$$;

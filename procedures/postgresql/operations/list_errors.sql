-- list_errors: count the dead letters of a queue by their error, exactly.
-- Arguments:   p_type (1 to 200 characters), p_size (the most errors to return, 1 to 10,000; NULL: 20)
-- Returns:     error (its first line, up to 200 characters, with # for each number; '': no error), count, first_at,
--              last_at, last_id; the most frequent error first
-- Errors:      50002 invalid_argument
-- Transaction: reads only: an index entry for each dead letter of the queue
-- Example:     SELECT messages, error FROM mq.list_errors('email');
CREATE OR REPLACE FUNCTION mq.list_errors(p_type text, p_size bigint DEFAULT NULL) RETURNS TABLE (
    error text,
    messages bigint,
    first_at timestamptz,
    last_at timestamptz,
    last_id bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashagg = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    RETURN QUERY
        SELECT g.error_group, g.messages, g.first_at, g.last_at, l.id
        FROM (
            SELECT d.error_group, count(*) AS messages, min(d.died_at) AS first_at, max(d.died_at) AS last_at
            FROM mq.dead AS d
            WHERE d.type = p_type
            GROUP BY d.type, d.error_group
            ORDER BY count(*) DESC, d.error_group
            LIMIT coalesce(p_size, 20)
        ) AS g
        CROSS JOIN LATERAL (
            SELECT d.id FROM mq.dead AS d
            WHERE d.type = p_type AND d.error_group = g.error_group
            ORDER BY d.type DESC, d.error_group DESC, d.died_at DESC, d.id DESC
            LIMIT 1
        ) AS l
        ORDER BY g.messages DESC, g.error_group;
END
$$;

-- list_errors: count the newest 10,000 dead letters of a queue by their error.
-- Arguments:   p_type (1 to 200 characters), p_size (the most errors to return, 1 to 10,000; NULL: 20)
-- Returns:     error (its first line, up to 200 characters, with # for each number; '': no error), count, first_at,
--              last_at, last_id; the most frequent error first
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT count, error FROM mq.list_errors('email');

CREATE OR REPLACE FUNCTION mq.list_errors(
    p_type text,
    p_size bigint DEFAULT NULL
) RETURNS TABLE (
    error text,
    count bigint,
    first_at timestamptz,
    last_at timestamptz,
    last_id bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    PERFORM mq.require_name('type', p_type, false);
    PERFORM mq.require_range('size', p_size, 1, 10000);
    RETURN QUERY
        SELECT e.error, count(*), min(e.died_at), max(e.died_at), (array_agg(e.id ORDER BY e.died_at DESC, e.id DESC))[1]
        FROM (
            SELECT mq.error_group(d.error) AS error, d.died_at, d.id
            FROM mq.dead AS d
            WHERE d.type = p_type
            ORDER BY d.type DESC, d.died_at DESC, d.id DESC
            LIMIT 10000
        ) AS e
        GROUP BY e.error
        ORDER BY count(*) DESC, e.error COLLATE "C"
        LIMIT coalesce(p_size, 20);
END
$$;

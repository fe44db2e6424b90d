-- get_result: what became of a message.
-- Arguments:   p_id
-- Returns:     state (N new, A active, C completed, E dead), result and error, or no row
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq.get_result(17);

CREATE OR REPLACE FUNCTION mq.get_result(
    p_id bigint
) RETURNS TABLE (
    state text,
    result text,
    error text
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_sort = off
SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    IF p_id IS NULL THEN
        PERFORM mq.raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    RETURN QUERY
        SELECT CASE
                WHEN e.id IS NOT NULL THEN 'E'
                WHEN d.id IS NOT NULL THEN 'N'
                -- A message of a group that is at work, of which an old ticket may be left.
                WHEN EXISTS (SELECT FROM mq.group_lock AS l WHERE l.id = m.id) THEN 'A'
                WHEN EXISTS (
                    SELECT FROM mq.ready AS r
                    WHERE r.type = m.type AND r.priority = m.priority AND r.run_at = m.run_at AND r.id = m.id
                ) OR EXISTS (SELECT FROM mq.ready AS r WHERE r.type = m.type AND r.by_id AND r.id = m.id) OR EXISTS (
                    SELECT FROM mq.grouped AS g
                    WHERE g.type = m.type AND g.group_key = coalesce(m.group_key, '') AND g.id = m.id
                ) THEN 'N'
                -- No search for the claim that holds it: it is nowhere else.
                ELSE 'A'
            END, r.result, coalesce(e.error, d.error)
        FROM mq.message AS m
        -- In order, so that only the primary keys serve: see erase.
        LEFT JOIN LATERAL (SELECT * FROM mq.dead WHERE id = ANY (ARRAY[m.id]) ORDER BY id) AS e ON true
        LEFT JOIN LATERAL (SELECT * FROM mq.delayed WHERE id = ANY (ARRAY[m.id]) ORDER BY id) AS d ON true
        LEFT JOIN mq.result AS r ON r.id = m.id
        WHERE m.id = p_id
        UNION ALL
        SELECT 'C', c.result, NULL FROM mq.archive AS c WHERE c.id = p_id;
END
$$;

-- get_result: a message's state, its result, and the error of its last failed attempt.
-- Arguments:   p_id (the message)
-- Returns:     state (N new, A active, E dead, C archived), result (NULL: none was stored), error (while the message is
--              delayed or dead, else NULL); no row when there is no such message, live or archived
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq.get_result(17);
CREATE OR REPLACE FUNCTION mq.get_result(p_id bigint) RETURNS TABLE (
    state text,
    result text,
    error text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
    IF p_id IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    RETURN QUERY
        SELECT mq_internal.state_of(m.id), r.result, coalesce(e.error, d.error)
        FROM mq.message AS m
        -- ORDER BY selects the primary keys: see erase.
        LEFT JOIN LATERAL (SELECT * FROM mq.dead WHERE id = ANY (ARRAY[m.id]) ORDER BY id) AS e ON true
        LEFT JOIN LATERAL (SELECT * FROM mq.delayed WHERE id = ANY (ARRAY[m.id]) ORDER BY id) AS d ON true
        LEFT JOIN mq.result AS r ON r.id = m.id
        WHERE m.id = p_id
        UNION ALL
        SELECT 'C', c.result, NULL FROM mq.archive AS c WHERE c.id = p_id;
END
$$;

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
        SELECT CASE
                WHEN e.id IS NOT NULL THEN 'E'
                WHEN d.id IS NOT NULL THEN 'N'
                -- An active message of a group; an old ticket of it may remain.
                WHEN EXISTS (SELECT FROM mq.group_lock AS l WHERE l.id = m.id) THEN 'A'
                WHEN EXISTS (
                    SELECT FROM mq.ready AS r
                    WHERE r.type = m.type AND r.priority = m.priority AND r.run_at = m.run_at AND r.id = m.id
                ) OR EXISTS (SELECT FROM mq_internal.rows_of(m.type, m.id, mq_internal.lane(true, m.priority, m.group_key))) OR EXISTS (
                    SELECT FROM mq.grouped AS g
                    WHERE g.type = m.type AND g.group_key = coalesce(m.group_key, '') AND g.id = m.id
                ) THEN 'N'
                -- Do not search for its claim: a message in no other table is active.
                ELSE 'A'
            END, r.result, coalesce(e.error, d.error)
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

-- state_of: the state of a message: N, A, E, or C when it is archived; NULL when there is no such message.
CREATE OR REPLACE FUNCTION mq_internal.state_of(p_id bigint) RETURNS text
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
BEGIN
    RETURN coalesce((
        SELECT CASE
                -- ORDER BY selects the primary keys: see erase.
                WHEN EXISTS (SELECT FROM mq.dead AS e WHERE e.id = ANY (ARRAY[m.id]) ORDER BY e.id OFFSET 0) THEN 'E'
                WHEN EXISTS (SELECT FROM mq.delayed AS d WHERE d.id = ANY (ARRAY[m.id]) ORDER BY d.id OFFSET 0) THEN 'N'
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
            END
        FROM mq.message AS m
        WHERE m.id = p_id
    ), (SELECT 'C' FROM mq.archive AS c WHERE c.id = p_id LIMIT 1));
END
$$;

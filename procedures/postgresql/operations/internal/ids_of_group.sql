-- ids_of_group: the ids of a group's messages, from a bounded search.
-- Returns: the lowest p_size ids found: all due messages of a queue with groups, and other messages among the first
--     10,000 of each state
CREATE OR REPLACE FUNCTION mq_internal.ids_of_group(p_type text, p_group_key text, p_size bigint) RETURNS bigint[]
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
DECLARE
    c_cap CONSTANT integer := 10000;
BEGIN
    RETURN ARRAY(
        SELECT f.id
        FROM (
            (SELECT g.id FROM mq.grouped AS g WHERE g.type = p_type AND g.group_key = p_group_key ORDER BY g.id LIMIT p_size)
            UNION
            SELECT m.id
            FROM (
                -- In a queue with groups these rows are tickets.
                (SELECT r.id FROM mq.ready AS r WHERE r.type = p_type ORDER BY r.type, r.priority, r.run_at, r.id LIMIT c_cap)
                UNION ALL
                (SELECT d.id FROM mq.delayed AS d WHERE d.type = p_type ORDER BY d.type, d.run_at, d.id LIMIT c_cap)
                UNION ALL
                (SELECT unnest(b.ids) FROM mq.batch AS b WHERE b.type = p_type ORDER BY b.type, b.lease_until LIMIT c_cap)
                UNION ALL
                (SELECT e.id FROM mq.dead AS e WHERE e.type = p_type ORDER BY e.type DESC, e.died_at DESC, e.id DESC LIMIT c_cap)
            ) AS x
            CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = x.id OFFSET 0) AS m
            WHERE m.group_key = p_group_key
        ) AS f
        ORDER BY f.id
        LIMIT p_size
    );
END
$$;

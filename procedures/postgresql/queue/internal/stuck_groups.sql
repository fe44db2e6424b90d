-- stuck_groups: groups that have due messages and are not blocked, but have no ticket: claims do not find them.
-- Returns: the group keys ('' for messages without one); there should be none
-- Transaction: reads only, from one snapshot, up to 10,000 entries of each table
CREATE OR REPLACE FUNCTION mq_internal.stuck_groups(p_type text, p_most bigint) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_sort = off SET jit = off AS $$
    WITH RECURSIVE due (group_key, n) AS (
        -- Read group after group from the beginning of the index.
        (SELECT g.group_key, 1 FROM mq.grouped AS g WHERE g.type = p_type ORDER BY g.type, g.group_key LIMIT 1)
        UNION ALL
        SELECT (
            SELECT g.group_key FROM mq.grouped AS g
            WHERE g.type = p_type AND g.group_key > d.group_key
            ORDER BY g.type, g.group_key LIMIT 1
        ), d.n + 1
        FROM due AS d WHERE d.group_key IS NOT NULL AND d.n < 10000
    ), ticketed AS MATERIALIZED (
        SELECT DISTINCT coalesce(m.group_key, '') AS group_key
        FROM (SELECT r.id FROM mq.ready AS r WHERE r.type = p_type LIMIT 10000) AS r
        CROSS JOIN LATERAL (SELECT group_key FROM mq.message WHERE id = r.id OFFSET 0) AS m
    ), held AS MATERIALIZED (
        SELECT unnest(b.ids) AS id FROM (SELECT ids FROM mq.batch WHERE type = p_type LIMIT 10000) AS b
    )
    SELECT d.group_key
    FROM due AS d
    CROSS JOIN (SELECT q FROM mq_internal.policy(p_type) AS q OFFSET 0) AS p
    CROSS JOIN LATERAL mq_internal.group_limits(p.q, d.group_key) AS o
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE w.id IS NULL AND e.id IS NULL AND l.id IN (SELECT h.id FROM held AS h)) AS active,
            count(*) FILTER (WHERE w.id IS NOT NULL OR e.id IS NOT NULL) AS waiting,
            count(*) AS locks
        FROM mq.group_lock AS l
        -- ORDER BY id selects the right index: see erase.
        LEFT JOIN LATERAL (SELECT id FROM mq.delayed WHERE id = ANY (ARRAY[l.id]) ORDER BY id) AS w ON true
        LEFT JOIN LATERAL (
            SELECT id FROM mq.dead WHERE id = ANY (ARRAY[l.id]) AND (p.q).dead_stops_group ORDER BY id
        ) AS e ON true
        WHERE l.type = p_type AND l.group_key = d.group_key
    ) AS l
    WHERE d.group_key IS NOT NULL
        AND CASE
            -- A message has a lock row, but no batch holds it, it is not delayed and does not stop the group.
            WHEN l.locks > l.active + l.waiting THEN true
            WHEN l.waiting > 0 OR o.places > 0 AND l.active >= o.places THEN false
            -- No ticket among the first tickets; if there are more tickets, none of the group's first messages has one.
            ELSE d.group_key NOT IN (SELECT t.group_key FROM ticketed AS t)
                AND NOT EXISTS (
                    SELECT FROM (
                        SELECT g.id FROM mq.grouped AS g
                        WHERE g.type = p_type AND g.group_key = d.group_key
                        ORDER BY g.type, g.group_key, g.id LIMIT 1000
                    ) AS g
                    CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = g.id OFFSET 0) AS m
                    CROSS JOIN LATERAL mq_internal.rows_of(p_type, g.id, mq_internal.lane(true, m.priority, m.group_key)) AS r
                )
            END
    LIMIT p_most;
$$;

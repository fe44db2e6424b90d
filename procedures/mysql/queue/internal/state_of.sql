-- state_of: the state of a message: N, A, E, or C when it is archived; NULL when there is no such message.
--
-- It reads by primary keys only: a live message that is neither dead nor new is active.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_state_of(IN p_id bigint, OUT p_state char(1) CHARACTER SET ascii)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    SELECT MAX(s.state) INTO p_state
    FROM (
        SELECT CASE
                WHEN e.id IS NOT NULL THEN 'E'
                WHEN d.id IS NOT NULL OR g.id IS NOT NULL OR NOT m.grouped AND COALESCE(r.id, o.id, f.id) IS NOT NULL THEN 'N'
                ELSE 'A'
            END AS state
        FROM (
            SELECT l.*, (SELECT q.grouped FROM mq_queue AS q WHERE q.type IN (l.type, '') ORDER BY q.type DESC LIMIT 1) AS grouped
            FROM mq_message AS l FORCE INDEX (PRIMARY)
            WHERE l.id = p_id
        ) AS m
        LEFT JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = m.id
        LEFT JOIN mq_delayed AS d FORCE INDEX (PRIMARY) ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
        LEFT JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
            ON g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
        LEFT JOIN mq_ready AS r FORCE INDEX (PRIMARY)
            ON r.type = m.type AND r.priority = m.priority AND r.lane = '' AND r.run_at = m.run_at AND r.id = m.id
        -- The position of a message in a queue that is claimed round-robin.
        LEFT JOIN mq_ready AS o FORCE INDEX (PRIMARY)
            ON o.type = m.type AND o.priority = -32768 AND o.lane = '' AND o.run_at = '1000-01-01' AND o.id = m.id
        -- Its lane in a fair queue.
        LEFT JOIN mq_ready AS f FORCE INDEX (PRIMARY)
            ON f.type = m.type AND f.priority = m.priority AND f.lane = COALESCE(m.group_key, '') AND f.run_at = '1000-01-01'
                AND f.id = m.id
        UNION ALL
        SELECT 'C' FROM mq_archive AS c FORCE INDEX (PRIMARY) WHERE c.id = p_id
    ) AS s;
END

-- last_lives: whether the last message of a schedule prevents the next one.
-- Arguments:   p_id (the last message, or NULL), p_overlap (the schedule's)
-- Returns:     p_lives: 1 while the last message is new, and without overlap also while it is active; a dead letter does
--              not prevent the next one

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_last_lives(
    IN p_id bigint, IN p_overlap tinyint, OUT p_lives tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    SELECT COUNT(*) INTO p_lives
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
    LEFT JOIN mq_ready AS o FORCE INDEX (PRIMARY)
        ON o.type = m.type AND o.priority = -32768 AND o.lane = '' AND o.run_at = '1000-01-01' AND o.id = m.id
    -- Its lane in a fair queue.
    LEFT JOIN mq_ready AS f FORCE INDEX (PRIMARY)
        ON f.type = m.type AND f.priority = m.priority AND f.lane = COALESCE(m.group_key, '') AND f.run_at = '1000-01-01' AND f.id = m.id
    -- A message without any of these rows is active.
    WHERE e.id IS NULL AND (NOT p_overlap OR d.id IS NOT NULL OR g.id IS NOT NULL
        OR NOT m.grouped AND COALESCE(r.id, o.id, f.id) IS NOT NULL);
END

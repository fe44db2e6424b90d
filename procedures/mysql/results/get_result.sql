-- get_result: a message's state, its result, and the error of its last failed attempt.
-- Arguments:   p_id (the message)
-- Returns:     state (N new, A active, E dead, C archived), result (NULL: none was stored), error (while the message is
--              delayed or dead, else NULL); no row when there is no such message, live or archived
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_get_result(17);
--
-- It reads by primary keys only: a live message that is neither dead nor new is active.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_get_result(IN p_id bigint)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    SELECT CASE
            WHEN e.id IS NOT NULL THEN 'E'
            WHEN d.id IS NOT NULL OR g.id IS NOT NULL OR NOT m.grouped AND COALESCE(r.id, o.id, f.id) IS NOT NULL THEN 'N'
            ELSE 'A'
        END AS state, k.result, COALESCE(e.error, d.error) AS error
    FROM (
        SELECT l.*, (SELECT q.grouped FROM mq_queue AS q WHERE q.type IN (l.type, '') ORDER BY q.type DESC LIMIT 1) AS grouped
        FROM mq_message AS l FORCE INDEX (PRIMARY)
        WHERE l.id = p_id
    ) AS m
    LEFT JOIN mq_result AS k FORCE INDEX (PRIMARY) ON k.id = m.id
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
        ON f.type = m.type AND f.priority = m.priority AND f.lane = COALESCE(m.group_key, '') AND f.run_at = '1000-01-01' AND f.id = m.id
    UNION ALL
    SELECT 'C', c.result, NULL FROM mq_archive AS c FORCE INDEX (PRIMARY) WHERE c.id = p_id;
END

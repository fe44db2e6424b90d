-- message_overview: message_state without bodies, headers and batch keys, for mq_viewer.
-- Arguments:   none; it is a view
-- Returns:     id, type, state (as in message_state), priority, group_key, dedup_key, attempts, created_at, source, run_at,
--              consumer, lease_until, changed_at, error
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT state, COUNT(*) FROM mq_message_overview WHERE type = 'email' GROUP BY state;
--
-- It repeats the text of message_state, because mq_viewer may not read all columns of that view. As grants.sql says, it
-- runs with its caller's rights.

CREATE OR REPLACE DEFINER = 'mq_owner'@'localhost' SQL SECURITY INVOKER VIEW mq_message_overview AS
SELECT
    m.id,
    m.type,
    CASE
        WHEN a.id IS NOT NULL THEN 'A'
        WHEN e.id IS NOT NULL THEN 'E'
        WHEN COALESCE(d.id, g.id, r.id, f.id, o.id) IS NOT NULL THEN 'N'
    END AS state, m.priority, m.group_key, m.dedup_key,
    COALESCE(a.attempt, e.attempts, d.attempts, g.attempts, r.attempts, f.attempts, o.attempts) AS attempts,
    m.created_at, m.source,
    IF(COALESCE(a.id, e.id, g.id) IS NULL, m.run_at, COALESCE(m.sent_run_at, m.run_at)) AS run_at,
    COALESCE(a.consumer, e.consumer) AS consumer, a.lease_until, COALESCE(a.claimed_at, e.died_at) AS changed_at,
    COALESCE(e.error, d.error, IF(m.cancelled_at IS NULL, NULL, 'cancelled')) AS error
FROM mq_message AS m
LEFT JOIN (
    SELECT j.id, j.attempt, b.consumer, b.lease_until, b.claimed_at
    FROM mq_batch AS b
    CROSS JOIN JSON_TABLE(b.items, '$[*]' COLUMNS (id bigint PATH '$[0]', attempt smallint PATH '$[1]')) AS j
    -- Keeps the optimizer from merging this into the outer query, which would read each list once per message.
    LIMIT 9223372036854775807
) AS a ON a.id = m.id
LEFT JOIN mq_dead AS e ON e.id = m.id
LEFT JOIN mq_delayed AS d ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
LEFT JOIN mq_grouped AS g ON g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
LEFT JOIN mq_ready AS r ON r.type = m.type AND r.priority = m.priority AND r.lane = '' AND r.run_at = m.run_at AND r.id = m.id
-- Its lane in a fair queue.
LEFT JOIN mq_ready AS f ON f.type = m.type AND f.priority = m.priority AND f.lane = COALESCE(m.group_key, '') AND f.run_at = '1000-01-01'
    AND f.id = m.id
-- The position of a message in a queue that is claimed round-robin.
LEFT JOIN mq_ready AS o ON o.type = m.type AND o.priority = -32768 AND o.lane = '' AND o.run_at = '1000-01-01' AND o.id = m.id
UNION ALL
SELECT c.id, c.type, 'C', c.priority, c.group_key COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */,
    c.dedup_key COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */, c.attempts, c.created_at, c.source,
    NULL, c.consumer, NULL, c.completed_at, NULL
FROM mq_archive AS c;

-- message_state: one row a message with its state letter, reader, times and error, for people who look into the queue.
-- Arguments:   none; it is a view
-- Returns:     id, type, state (N, A, E; C for archived ones; NULL: damaged, in no state), body, headers, priority,
--              group_key, dedup_key, attempts, created_at, source, run_at, reader, batch_key, lease_until, changed_at, error
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT state, COUNT(*) FROM mq_message_state WHERE type = 'email' GROUP BY state;

CREATE OR ALTER VIEW mq_message_state (
    id, type, state, body, headers, priority, group_key, dedup_key, attempts, created_at, source, run_at, reader, batch_key,
    lease_until, changed_at, error
) AS
SELECT
    m.id,
    m.type,
    CASE
        WHEN b.batch_key IS NOT NULL THEN 'A'
        WHEN e.id IS NOT NULL THEN 'E'
        WHEN COALESCE(d.id, g.id, r.id) IS NOT NULL THEN 'N'
    END,
    m.body,
    m.headers,
    m.priority,
    m.group_key,
    m.dedup_key,
    COALESCE(b.attempt, c.attempt, e.attempts, d.attempts, g.attempts, r.attempts),
    m.created_at,
    m.source,
    COALESCE(d.run_at, CASE WHEN COALESCE(g.id, b.id, c.id, e.id) IS NULL THEN r.run_at END, m.run_at),
    COALESCE(b.reader, e.reader),
    b.batch_key,
    b.lease_until,
    COALESCE(b.claimed_at, e.died_at),
    COALESCE(e.error, d.error)
FROM mq_message AS m
-- By way of the batches of the type: no index finds the batch of a message. Alone in its row, or one of several.
LEFT JOIN mq_batch AS b ON b.type = m.type AND (b.id = m.id
    OR EXISTS (SELECT 1 FROM mq_claimed AS h WHERE h.batch_key = b.batch_key AND h.id = m.id))
LEFT JOIN mq_claimed AS c ON c.batch_key = b.batch_key AND c.id = m.id
LEFT JOIN mq_dead AS e ON e.id = m.id
LEFT JOIN mq_delayed AS d ON d.id = m.id
LEFT JOIN mq_grouped AS g ON g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
-- In a grouped queue these are tickets, and a message may have left more than one. The one that is left is told by its key, and
-- so that no index can serve for that: 5.0 would look for a lower DB_KEY in the whole table.
LEFT JOIN mq_ready AS r ON r.type = m.type AND r.id = m.id AND NOT EXISTS (
    SELECT 1 FROM mq_ready AS t
    WHERE t.type = r.type AND t.id = r.id
        AND (0 > t.priority - r.priority OR (t.priority = r.priority AND t.run_at < r.run_at))
)
UNION ALL
SELECT a.id, a.type, 'C', a.body, a.headers, a.priority, a.group_key, a.dedup_key, a.attempts, a.created_at, a.source,
    CAST(NULL AS timestamp), a.reader, CAST(NULL AS varchar(36) CHARACTER SET ASCII), CAST(NULL AS timestamp), a.completed_at,
    CAST(NULL AS varchar(4000) CHARACTER SET UTF8)
FROM mq_archive AS a;

-- message_state: one row per message with its state, consumer, times and error, for queries by hand.
-- Arguments:   none; it is a view
-- Returns:     id, type, state (N new, A active, E dead, C archived; NULL: damaged, the message is in no state), body,
--              headers, priority, group_key, dedup_key, attempts, created_at, source, run_at, consumer, batch_key,
--              lease_until, changed_at, error
-- Errors:      none
-- Transaction: reads only, at the caller's level
-- Example:     SELECT state, COUNT(*) FROM mq.message_state WHERE type = N'email' GROUP BY state;
CREATE OR ALTER VIEW mq.message_state
AS
SELECT
    m.id,
    m.type,
    CASE
        WHEN a.id IS NOT NULL THEN 'A'
        WHEN e.id IS NOT NULL THEN 'E'
        WHEN COALESCE(d.id, g.id, r.id) IS NOT NULL THEN 'N'
    END AS state,
    m.body,
    m.headers,
    m.priority,
    m.group_key,
    m.dedup_key,
    COALESCE(a.attempt, e.attempts, d.attempts, g.attempts, r.attempts) AS attempts,
    m.created_at,
    m.source,
    CASE WHEN COALESCE(a.id, e.id, g.id) IS NULL THEN m.run_at ELSE COALESCE(m.sent_run_at, m.run_at) END AS run_at,
    COALESCE(a.consumer, e.consumer) AS consumer,
    a.batch_key,
    a.lease_until,
    COALESCE(a.claimed_at, e.died_at) AS changed_at,
    COALESCE(e.error, d.error, CASE WHEN m.cancelled_at IS NOT NULL THEN N'cancelled' END) AS error
FROM mq.message AS m
LEFT JOIN (
    SELECT c.id, c.attempt, b.type, b.consumer, b.batch_key, b.lease_until, b.claimed_at
    FROM mq.batch AS b
    INNER JOIN mq.claimed AS c ON c.batch_key = b.batch_key
) AS a ON a.type = m.type AND a.id = m.id
LEFT JOIN mq.dead AS e ON e.id = m.id
LEFT JOIN mq.delayed AS d ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
LEFT JOIN mq.grouped AS g ON g.id = m.id
OUTER APPLY mq_internal.ready_row(m.type, m.id, m.priority, m.group_key, m.run_at) AS r
UNION ALL
SELECT c.id, c.type, 'C', c.body, c.headers, c.priority, c.group_key, c.dedup_key, c.attempts, c.created_at, c.source, NULL,
    c.consumer, NULL, NULL, c.completed_at, NULL
FROM mq.archive AS c;

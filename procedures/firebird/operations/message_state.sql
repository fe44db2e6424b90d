-- message_state: one row per message with its state, consumer, times and error, for queries by hand.
-- Arguments:   none; it is a view
-- Returns:     id, type, state (N new, A active, E dead, C archived; NULL: damaged, the message is in no state), body,
--              headers, priority, group_key, dedup_key, attempts, created_at, source, run_at, consumer, batch_key,
--              lease_until, changed_at, error
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT state, COUNT(*) FROM mq_message_state WHERE type = 'email' GROUP BY state;

CREATE OR ALTER VIEW mq_message_state (
    id, type, state, body, headers, priority, group_key, dedup_key, attempts, created_at, source, run_at, consumer, batch_key,
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
    COALESCE(b.consumer, e.consumer),
    b.batch_key,
    b.lease_until,
    COALESCE(b.claimed_at, e.died_at),
    COALESCE(e.error, d.error, CASE WHEN EXISTS (SELECT 1 FROM mq_cancelled AS k WHERE k.id = m.id) THEN 'cancelled' END)
FROM mq_message AS m
-- Through the batches of the type, because no index finds the batch of a message. A batch holds one message in its own
-- row, or several in mq_claimed.
LEFT JOIN mq_batch AS b ON b.type = m.type AND (b.id = m.id
    OR EXISTS (SELECT 1 FROM mq_claimed AS h WHERE h.batch_key = b.batch_key AND h.id = m.id))
LEFT JOIN mq_claimed AS c ON c.batch_key = b.batch_key AND c.id = m.id
LEFT JOIN mq_dead AS e ON e.id = m.id
LEFT JOIN mq_delayed AS d ON d.id = m.id
LEFT JOIN mq_grouped AS g ON g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
-- In a queue with groups these rows are tickets, and a message may have several old ones. The row with the lowest DB_KEY
-- counts. The comparison is written to prevent the use of an index: 5.0 would scan the whole table for a lower DB_KEY.
LEFT JOIN mq_ready AS r ON r.type = m.type AND r.id = m.id
    AND (r.lane IS NULL OR r.lane = CAST(LPAD(m.priority + 32768, 5, '0') || COALESCE(m.group_key, '') AS mq_lane)) AND NOT EXISTS (
    SELECT 1 FROM mq_ready AS t
    WHERE t.type = r.type AND t.id = r.id
        AND (t.lane IS NULL OR t.lane = CAST(LPAD(m.priority + 32768, 5, '0') || COALESCE(m.group_key, '') AS mq_lane))
        AND (0 > t.priority - r.priority OR (t.priority = r.priority AND t.run_at < r.run_at))
)
UNION ALL
SELECT a.id, a.type, 'C', a.body, a.headers, a.priority, a.group_key, a.dedup_key, a.attempts, a.created_at, a.source,
    CAST(NULL AS timestamp), a.consumer, CAST(NULL AS varchar(36) CHARACTER SET ASCII), CAST(NULL AS timestamp), a.completed_at,
    CAST(NULL AS varchar(4000) CHARACTER SET UTF8)
FROM mq_archive AS a;

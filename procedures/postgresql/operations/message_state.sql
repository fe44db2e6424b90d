-- message_state: one row per message with its state, consumer, times and error, for queries by hand.
-- Arguments:   none; it is a view
-- Returns:     id, type, state (N new, A active, E dead, C archived; NULL: damaged, the message is in no state), body,
--              headers, priority, group_key, dedup_key, attempts, created_at, source, run_at, consumer, batch_key,
--              lease_until, changed_at, error
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT state, count(*) FROM mq.message_state WHERE type = 'email' GROUP BY state;
CREATE OR REPLACE VIEW mq.message_state AS
SELECT
    m.id,
    m.type,
    CASE
        WHEN a.id IS NOT NULL THEN 'A'
        WHEN e.id IS NOT NULL THEN 'E'
        WHEN d.id IS NOT NULL OR g.id IS NOT NULL OR r.id IS NOT NULL THEN 'N'
    END AS state,
    m.body,
    m.headers,
    m.priority,
    m.group_key,
    m.dedup_key,
    coalesce(a.attempt, e.attempts, d.attempts, g.attempts, r.attempts) AS attempts,
    m.created_at,
    m.source,
    coalesce(d.run_at, CASE WHEN g.id IS NULL THEN r.run_at END, m.run_at) AS run_at,
    coalesce(a.consumer, e.consumer) AS consumer,
    a.batch_key,
    a.lease_until,
    coalesce(a.claimed_at, e.died_at) AS changed_at,
    coalesce(e.error, d.error, CASE WHEN m.cancelled_at IS NOT NULL THEN 'cancelled' END) AS error
FROM mq.message AS m
LEFT JOIN (
    SELECT u.id, u.attempt, b.consumer, b.batch_key, b.lease_until, b.claimed_at
    FROM mq.batch AS b
    CROSS JOIN LATERAL unnest(b.ids, b.attempts) AS u (id, attempt)
) AS a ON a.id = m.id
-- ORDER BY selects the primary keys: see erase.
LEFT JOIN LATERAL (SELECT * FROM mq.dead WHERE id = ANY (ARRAY[m.id]) ORDER BY id) AS e ON true
LEFT JOIN LATERAL (SELECT * FROM mq.delayed WHERE id = ANY (ARRAY[m.id]) ORDER BY id) AS d ON true
LEFT JOIN mq.grouped AS g ON g.type = m.type AND g.group_key = coalesce(m.group_key, '') AND g.id = m.id
LEFT JOIN LATERAL (
    -- In a queue with groups these rows are tickets, and a message may have several old ones.
    SELECT f.id, f.run_at, f.attempts
    FROM (
        SELECT t.id, t.run_at, t.attempts FROM mq.ready AS t
        WHERE t.type = m.type AND t.priority = m.priority AND t.run_at = m.run_at AND t.id = m.id
        UNION ALL
        SELECT t.id, t.run_at, t.attempts FROM mq.ready AS t
        WHERE t.type = m.type AND t.by_id IS NOT NULL AND t.lane IS NULL AND t.id = m.id
        UNION ALL
        SELECT t.id, t.run_at, t.attempts FROM mq.ready AS t
        WHERE t.type = m.type AND t.by_id IS NOT NULL AND t.lane = lpad((m.priority + 32768)::text, 5, '0') || coalesce(m.group_key, '')
            AND t.id = m.id
    ) AS f
    LIMIT 1
) AS r ON true
UNION ALL
SELECT c.id, c.type, 'C', c.body, c.headers, c.priority, c.group_key, c.dedup_key, c.attempts, c.created_at, c.source,
    NULL, c.consumer, NULL, NULL, c.completed_at, NULL
FROM mq.archive AS c;

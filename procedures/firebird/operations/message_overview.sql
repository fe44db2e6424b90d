-- message_overview: message_state without bodies, headers and batch keys, for mq_viewer.
-- Arguments:   none; it is a view
-- Returns:     id, type, state (as in message_state), priority, group_key, dedup_key, attempts, created_at, source, run_at,
--              consumer, lease_until, changed_at, error
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT state, COUNT(*) FROM mq_message_overview WHERE type = 'email' GROUP BY state;

CREATE OR ALTER VIEW mq_message_overview (
    id, type, state, priority, group_key, dedup_key, attempts, created_at, source, run_at, consumer, lease_until, changed_at, error
) AS
SELECT id, type, state, priority, group_key, dedup_key, attempts, created_at, source, run_at, consumer, lease_until, changed_at,
    error
FROM mq_message_state;

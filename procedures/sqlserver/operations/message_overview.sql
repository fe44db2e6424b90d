-- message_overview: message_state without bodies, headers and batch keys, for mq_viewer.
-- Arguments:   none; it is a view
-- Returns:     id, type, state (as in message_state), priority, group_key, dedup_key, attempts, created_at, source, run_at,
--              consumer, lease_until, changed_at, error
-- Errors:      none
-- Transaction: reads only, at the caller's level
-- Example:     SELECT state, COUNT(*) FROM mq.message_overview WHERE type = N'email' GROUP BY state;
CREATE OR ALTER VIEW mq.message_overview
AS
SELECT id, type, state, priority, group_key, dedup_key, attempts, created_at, source, run_at, consumer, lease_until, changed_at,
    error
FROM mq.message_state;

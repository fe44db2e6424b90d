-- message_overview: message_state without bodies, headers and batch keys, for mq_viewer.
-- Arguments:   none; it is a view
-- Returns:     id, type, state (as in message_state), priority, group_key, dedup_key, attempts, created_at, source, run_at,
--              consumer, lease_until, changed_at, error
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT state, count(*) FROM mq.message_overview WHERE type = 'email' GROUP BY state;
--
-- Up to version 15, PostgreSQL shows the columns of a view on one relation with its name, later without. The second relation,
-- which the planner removes, keeps the definition the same in every version: a restored queue is not reported as changed.
CREATE OR REPLACE VIEW mq.message_overview AS
SELECT s.id, s.type, s.state, s.priority, s.group_key, s.dedup_key, s.attempts, s.created_at, s.source, s.run_at, s.consumer,
    s.lease_until, s.changed_at, s.error
FROM mq.message_state AS s
CROSS JOIN (SELECT) AS o;

-- policy: the settings of a type; the defaults when it has no settings.
-- Returns: one row: lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, ring,
--     fair, notify, max_active, rate, rate_seconds, group_max_active, group_rate, group_rate_seconds, grouped,
--     dead_stops_group, paused
-- Transaction: reads only, at READ COMMITTED: a SERIALIZABLE sender would keep the policy locked until it ends
CREATE OR ALTER FUNCTION mq_internal.policy (@type nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT TOP (1) lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, ring, fair, notify,
        max_active, rate, rate_seconds, group_max_active, group_rate, group_rate_seconds, grouped, dead_stops_group, paused
    -- Without row versions, a scan would wait for changes of other types.
    FROM mq.queue WITH (READCOMMITTED, FORCESEEK, INDEX (queue_pk))
    -- The row with the empty type holds the defaults and comes last.
    WHERE type IN (@type, N'')
    ORDER BY type DESC;

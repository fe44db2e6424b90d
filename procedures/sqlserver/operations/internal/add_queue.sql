-- add_queue: lock the policy of a type; if it has none, add one with the defaults.
-- Transaction: calls for one type wait for each other
CREATE OR ALTER PROCEDURE mq_internal.add_queue
    @type nvarchar(400)
AS
BEGIN
    -- Locks the key range too: of two first calls for a type, the second waits here and then finds the row.
    IF NOT EXISTS (SELECT * FROM mq.queue WITH (UPDLOCK, HOLDLOCK, ROWLOCK) WHERE type = @type)
        INSERT INTO mq.queue (type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, ring, fair,
            notify, max_active, rate, rate_seconds, group_max_active, group_rate, group_rate_seconds, grouped, dead_stops_group,
            paused)
        SELECT @type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, ring, fair, notify,
            max_active, rate, rate_seconds, group_max_active, group_rate, group_rate_seconds, grouped, dead_stops_group,
            paused
        FROM mq_internal.policy(@type);
END;

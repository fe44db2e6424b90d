-- hold: store picked messages as a batch with a lease, and return them.
-- Arguments: @batch_key, @type, @consumer, @lease_seconds, @counted and @in_groups (as in mq.batch), @max_attempts (of the
--     queue)
-- Returns: the messages in order of priority, run_at, id
CREATE OR ALTER PROCEDURE mq_internal.hold
    @batch_key uniqueidentifier, @type nvarchar(400), @consumer nvarchar(400), @lease_seconds int, @counted bit,
    @in_groups bit, @max_attempts int
AS
BEGIN
    DECLARE @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @until datetime2(7) = DATEADD(SECOND, @lease_seconds, @now);
    INSERT INTO mq.batch (batch_key, claimed_at, lease_until, lease_seconds, counted, in_groups, type, consumer)
    VALUES (@batch_key, @now, @until, @lease_seconds, @counted, @in_groups, @type, @consumer);
    EXEC mq_internal.return_batch @batch_key, @until, @max_attempts;
END;

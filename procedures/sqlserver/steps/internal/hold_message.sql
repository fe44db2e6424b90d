-- hold_message: make sure that a batch key holds a message until the caller's transaction ends; else raise lease_lost, or
--     cancelled.
-- Returns: @key (the batch key), @lease_until, @lease_seconds (of the batch)
-- Transaction: what finishes, rescues or releases this message waits or skips it; the other messages of the batch are free
--
-- The row of the message is locked, not that of the batch: its neighbours would wait for the whole transaction of this
-- handler. rescue and release_consumer leave a batch alone while such a row is locked. With UPDLOCK, because their own
-- UPDLOCK would not notice a shared lock; readers do not wait for it. Each call is READ COMMITTED, so the read after the
-- lock shows what a rescue has committed, with row versions and without.
CREATE OR ALTER PROCEDURE mq_internal.hold_message
    @id bigint, @batch_key nvarchar(max), @key uniqueidentifier OUTPUT, @lease_until datetime2(7) OUTPUT, @lease_seconds int OUTPUT
AS
BEGIN
    DECLARE @cancelled_at datetime2(7);
    IF @id IS NULL
        EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
    EXEC mq_internal.require_key @batch_key, @key OUTPUT;
    SET @lease_until = NULL;
    SELECT @cancelled_at = cancelled_at FROM mq.message WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE id = @id;
    -- The times may be those of another transaction: the row in mq.claimed proves the lease.
    SELECT @lease_until = b.lease_until, @lease_seconds = b.lease_seconds
    FROM mq.claimed AS c
    INNER JOIN mq.batch AS b WITH (READUNCOMMITTED) ON b.batch_key = c.batch_key
    WHERE c.batch_key = @key AND c.id = @id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    IF @lease_until IS NULL
        EXEC mq_internal.raise_error 'lease_lost',
            N'batch_key: does not hold message {}; roll back, do not retry, continue with the next claim', @id;
    IF @cancelled_at IS NOT NULL
        EXEC mq_internal.raise_error 'cancelled', N'message {} was cancelled; roll back, and end its handler', @id;
END;

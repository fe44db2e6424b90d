-- set_result: store a result with a claimed message; it is kept with the archived message.
-- Arguments:   @id (the message), @batch_key (the batch key that holds it), @result (up to 16 MiB)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument (also when the queue does not archive), 50008 lease_lost
-- Transaction: joins the caller's; waits for another call on the same batch
-- Example:     EXEC mq.set_result 17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', N'{"pages":3}';
CREATE OR ALTER PROCEDURE mq.set_result
    @id bigint,
    @batch_key nvarchar(max),
    @result nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: the call needs the current rows, and a snapshot shows old ones.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @key uniqueidentifier, @type nvarchar(400), @holds bit = 0;
    DECLARE @on_complete varchar(7);
    BEGIN TRY
        IF @id IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
        EXEC mq_internal.require_key @batch_key, @key OUTPUT;
        EXEC mq_internal.require_body 'result', @result, 16777216, N'16 MiB (16,777,216 bytes)', 0;
        IF @own = 1
            BEGIN TRANSACTION;
        -- As in withdraw: no other call can finish the message in the meantime.
        SELECT @type = type FROM mq.batch WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE batch_key = @key;
        IF @type IS NOT NULL
            SELECT @holds = 1 FROM mq.claimed WHERE batch_key = @key AND id = @id;
        IF @holds = 0
            EXEC mq_internal.raise_error 'lease_lost',
                N'batch_key: does not hold message {}; roll back, do not retry, continue with the next claim', @id;
        SELECT @on_complete = on_complete FROM mq_internal.policy(@type);
        IF @on_complete <> 'archive'
            EXEC mq_internal.raise_error 'invalid_argument', N'id: the queue keeps no results; call set_queue with on_complete archive';
        UPDATE mq.result SET result = @result WHERE id = @id;
        IF @@ROWCOUNT = 0
            INSERT INTO mq.result (id, result) VALUES (@id, @result);
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT CAST(1 AS bigint) AS affected;
END;

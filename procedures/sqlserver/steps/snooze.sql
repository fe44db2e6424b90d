-- snooze: put a claimed message back, due later: no attempt is counted, and its steps are kept; if it was
--     cancelled, delete it.
-- Arguments:   @id (the message), @batch_key (the batch key that holds it), @seconds (0 to 315,360,000)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument, 50008 lease_lost (the batch key does not hold the message: roll back)
-- Transaction: joins the caller's; in an ordered queue the message's group waits, as for a retry
-- Example:     EXEC mq.snooze 17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 3600;
CREATE OR ALTER PROCEDURE mq.snooze
    @id bigint,
    @batch_key nvarchar(max),
    @seconds bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @key uniqueidentifier, @type nvarchar(400), @attempt smallint, @consumer nvarchar(400), @dead bigint;
    DECLARE @failed mq.failures;
    BEGIN TRY
        IF @id IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
        IF @seconds IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'seconds: must not be NULL';
        EXEC mq_internal.require_key @batch_key, @key OUTPUT;
        EXEC mq_internal.require_range 'seconds', @seconds, 0, 315360000;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.leave_batch @id, @key, @type OUTPUT, @attempt OUTPUT, @consumer OUTPUT;
        DELETE FROM mq.claimed WHERE batch_key = @key AND id = @id;
        -- As a failure that the message survives, because this attempt does not count.
        INSERT INTO @failed (id, attempts, retry, error) VALUES (@id, @attempt - 1, @seconds, NULL);
        EXEC mq_internal.fail_messages @type, @consumer, @failed, @dead OUTPUT;
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

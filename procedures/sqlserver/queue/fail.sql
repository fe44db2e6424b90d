-- fail: record a failed attempt: retry the message after a delay, or dead-letter it when its attempts are used up.
-- Arguments:   @id, @batch_key (the key that its claim returned), @error (cut to 4,000 characters), @retry_after_seconds (0
--              to 315,360,000; NULL: the queue's backoff)
-- Returns:     state: N (will be retried) or E (dead letter); NULL: it was cancelled, and is deleted
-- Errors:      50002 invalid_argument, 50008 lease_lost (the batch key does not hold the message: roll back)
-- Transaction: joins the caller's
-- Example:     EXEC mq.fail 17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', N'mailbox busy', 30;
CREATE OR ALTER PROCEDURE mq.fail
    @id bigint,
    @batch_key nvarchar(max),
    @error nvarchar(max) = NULL,
    @retry_after_seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @key uniqueidentifier, @type nvarchar(400), @attempt smallint, @consumer nvarchar(400), @dead bigint, @state char(1);
    DECLARE @failed mq.failures;
    BEGIN TRY
        IF @id IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
        EXEC mq_internal.require_key @batch_key, @key OUTPUT;
        EXEC mq_internal.require_range 'retry_after_seconds', @retry_after_seconds, 0, 315360000;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.leave_batch @id, @key, @type OUTPUT, @attempt OUTPUT, @consumer OUTPUT;
        DELETE FROM mq.claimed WHERE batch_key = @key AND id = @id;
        INSERT INTO @failed (id, attempts, retry, error) VALUES (@id, @attempt, @retry_after_seconds, @error);
        EXEC mq_internal.fail_messages @type, @consumer, @failed, @dead OUTPUT;
        SELECT @state = CASE WHEN @dead > 0 THEN 'E' ELSE 'N' END FROM mq.message WHERE id = @id;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @state AS state;
END;

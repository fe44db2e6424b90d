-- dead_letter: record a failed attempt and dead-letter the message now: it can never succeed.
-- Arguments:   @id, @batch_key (the key that its claim returned), @error (cut to 4,000 characters)
-- Returns:     state: E; NULL: it was cancelled, and is deleted
-- Errors:      50002 invalid_argument, 50008 lease_lost (the batch key does not hold the message: roll back)
-- Transaction: joins the caller's
-- Example:     EXEC mq.dead_letter 17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', N'no such mailbox';
CREATE OR ALTER PROCEDURE mq.dead_letter
    @id bigint,
    @batch_key nvarchar(max),
    @error nvarchar(max) = NULL
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
        EXEC mq_internal.require_key @batch_key, @key OUTPUT;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.leave_batch @id, @key, @type OUTPUT, @attempt OUTPUT, @consumer OUTPUT;
        DELETE FROM mq.claimed WHERE batch_key = @key AND id = @id;
        INSERT INTO @failed (id, attempts, retry, error) VALUES (@id, @attempt, -1, @error);
        EXEC mq_internal.fail_messages @type, @consumer, @failed, @dead OUTPUT;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT CASE WHEN @dead > 0 THEN 'E' END AS state;
END;

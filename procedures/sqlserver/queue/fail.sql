-- fail: one attempt failed: back to new after a delay, or dead when the attempts are used up.
-- Arguments:   @id, @batch_key (the key that holds it; NULL: a ready message, after a rolled-back take), @error (cut to 4,000
--              characters), @retry_after_seconds (NULL: the queue's backoff; -1: dead now)
-- Returns:     state: N or E; NULL when the key does not hold the message
-- Errors:      50002 invalid_argument
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
    SET ROWCOUNT 0; -- a limit of the session would hold in here too
    -- For as long as this call: claims pass over locked rows, which no higher level allows.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @key uniqueidentifier, @type nvarchar(400), @attempt smallint, @reader nvarchar(400), @dead bigint;
    DECLARE @failed mq.failures;
    BEGIN TRY
        IF @id IS NULL
            EXEC mq.raise_error 'invalid_argument', N'id: must not be NULL';
        IF @batch_key IS NOT NULL
            EXEC mq.require_key @batch_key, @key OUTPUT;
        EXEC mq.require_range 'retry_after_seconds', @retry_after_seconds, -1, 315360000;
        IF @own = 1
            BEGIN TRANSACTION;
        IF @key IS NULL
            EXEC mq.remove_ready @id, @type OUTPUT, @attempt OUTPUT, @reader OUTPUT;
        ELSE
            EXEC mq.withdraw @id, @key, @type OUTPUT, @attempt OUTPUT, @reader OUTPUT;
        IF @type IS NOT NULL
        BEGIN
            DELETE FROM mq.claimed WHERE batch_key = @key AND id = @id;
            INSERT INTO @failed (id, attempts, retry, error) VALUES (@id, @attempt, @retry_after_seconds, @error);
            EXEC mq.fail_messages @type, @reader, @failed, @dead OUTPUT;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT CASE WHEN @type IS NULL THEN NULL WHEN @dead > 0 THEN 'E' ELSE 'N' END AS state;
END;
GO

-- count_attempt: count a take that was rolled back as a failed attempt: retry the message after a delay, or dead-letter it.
-- Arguments:   @id (a ready message that no consumer holds), @error (cut to 4,000 characters), @retry_after_seconds (0 to
--              315,360,000; NULL: the queue's backoff), @dead (1: dead-letter it now; NULL: 0)
-- Returns:     state: N (will be retried) or E (dead letter); NULL when the message is not ready, and nothing has changed
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; skips a message that a claim is taking at this moment
-- Example:     EXEC mq.count_attempt 17, N'mailbox busy', 30;
CREATE OR ALTER PROCEDURE mq.count_attempt
    @id bigint,
    @error nvarchar(max) = NULL,
    @retry_after_seconds bigint = NULL,
    @dead bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @type nvarchar(400), @attempt smallint, @consumer nvarchar(400), @died bigint;
    DECLARE @failed mq.failures;
    BEGIN TRY
        IF @id IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
        EXEC mq_internal.require_range 'retry_after_seconds', @retry_after_seconds, 0, 315360000;
        EXEC mq_internal.require_range 'dead', @dead, 0, 1;
        IF @dead = 1 AND @retry_after_seconds IS NOT NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'dead: give either dead or retry_after_seconds';
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.remove_ready @id, @type OUTPUT, @attempt OUTPUT, @consumer OUTPUT;
        IF @type IS NOT NULL
        BEGIN
            INSERT INTO @failed (id, attempts, retry, error)
            VALUES (@id, @attempt, CASE WHEN @dead = 1 THEN -1 ELSE @retry_after_seconds END, @error);
            EXEC mq_internal.fail_messages @type, @consumer, @failed, @died OUTPUT;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT CASE WHEN @type IS NULL THEN NULL WHEN @died > 0 THEN 'E' ELSE 'N' END AS state;
END;

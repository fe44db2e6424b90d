-- finish_batch: complete a batch except for its failures, and claim the next batch, in one transaction.
-- Arguments:   @batch_key, @outcomes (a JSON object per line; error: the message failed; retry_after_seconds: when to
--              retry it, without it the queue's backoff; dead: 1 dead-letters it; released: 1 gives it back), @next_size (0
--              to 10,000; NULL or 0: claim nothing)
-- Returns:     the messages of the next batch, as claim_batch returns them; no rows when @next_size is 0 or nothing is ready
-- Errors:      50002 invalid_argument, 50008 lease_lost
-- Transaction: joins the caller's; never waits for another claim
-- Example:     EXEC mq.finish_batch '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', N'{"id":17,"error":"busy"}', 100;
CREATE OR ALTER PROCEDURE mq.finish_batch
    @batch_key nvarchar(max),
    @outcomes nvarchar(max) = NULL,
    @next_size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @key uniqueidentifier, @type nvarchar(400), @consumer nvarchar(400), @seconds int, @count bigint;
    DECLARE @detail nvarchar(2000);
    DECLARE @lines TABLE (n int NOT NULL PRIMARY KEY, id bigint, retry int, error nvarchar(max), problem nvarchar(2000));
    DECLARE @listed mq.failures;
    BEGIN TRY
        EXEC mq_internal.require_key @batch_key, @key OUTPUT;
        EXEC mq_internal.require_range 'next_size', @next_size, 0, 10000;
        IF DATALENGTH(@outcomes) > 0
        BEGIN
            INSERT INTO @lines (n, id, retry, error, problem)
            SELECT n, id, retry, error, LEFT(problem, 1000) FROM mq_internal.read_outcomes(@outcomes);
            SELECT TOP (1) @detail = problem FROM @lines WHERE problem IS NOT NULL ORDER BY n;
            IF @detail IS NOT NULL
                EXEC mq_internal.raise_error 'invalid_argument', @detail;
        END;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.drop_batch @key, @type OUTPUT, @consumer OUTPUT, @seconds OUTPUT;
        IF @type IS NULL
            EXEC mq_internal.raise_error 'lease_lost',
                N'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim';
        IF EXISTS (SELECT * FROM @lines)
        BEGIN
            INSERT INTO @listed (id, attempts, retry, error)
            SELECT c.id, c.attempt, l.retry, l.error
            FROM @lines AS l
            INNER JOIN mq.claimed AS c ON c.batch_key = @key AND c.id = l.id
            WHERE l.error IS NOT NULL OR l.retry = -2
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            EXEC mq_internal.settle_listed @key, @type, @consumer, @listed;
        END;
        EXEC mq_internal.complete_messages @key, NULL, @type, @consumer, @count OUTPUT;
        IF @next_size > 0
            EXEC mq_internal.claim @type, @next_size, @consumer, @seconds;
        ELSE
            EXEC mq_internal.return_batch NULL, NULL, NULL;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

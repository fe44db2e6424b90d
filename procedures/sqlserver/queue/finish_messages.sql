-- finish_messages: finish a part of a batch: the messages that the list names. The others stay claimed.
-- Arguments:   @batch_key, @outcomes (a JSON object per line; only the id: the message is done; error: it failed;
--              retry_after_seconds: when to retry it, without it the queue's backoff; dead: 1 dead-letters it; released: 1
--              gives it back without counting the attempt)
-- Returns:     affected: messages that the batch no longer holds
-- Errors:      50002 invalid_argument, 50008 lease_lost
-- Transaction: joins the caller's; calls for the same batch wait for each other
-- Example:     EXEC mq.finish_messages '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', N'{"id":17}';
CREATE OR ALTER PROCEDURE mq.finish_messages
    @batch_key nvarchar(max),
    @outcomes nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @step int = 1000, @took int = 1000;
    DECLARE @key uniqueidentifier, @part uniqueidentifier = NEWID(), @type nvarchar(400), @consumer nvarchar(400);
    DECLARE @counted bit, @in_groups bit, @count bigint = 0, @done bigint, @detail nvarchar(2000);
    DECLARE @lines TABLE (n int NOT NULL PRIMARY KEY, id bigint, retry int, error nvarchar(max), problem nvarchar(2000));
    DECLARE @listed mq.failures;
    BEGIN TRY
        EXEC mq_internal.require_key @batch_key, @key OUTPUT;
        IF @outcomes IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'outcomes: must not be NULL';
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
        SELECT @type = type, @consumer = consumer, @counted = counted, @in_groups = in_groups
        FROM mq.batch WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)
        WHERE batch_key = @key;
        IF @type IS NULL
            EXEC mq_internal.raise_error 'lease_lost',
                N'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim';
        INSERT INTO @listed (id, attempts, retry, error)
        SELECT c.id, c.attempt, l.retry, l.error
        FROM @lines AS l
        INNER JOIN mq.claimed AS c ON c.batch_key = @key AND c.id = l.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        -- The part becomes a batch of its own, without a row in mq.batch, and is finished as a whole.
        WHILE @took = @step
        BEGIN
            UPDATE TOP (@step) c
            SET batch_key = @part
            FROM @listed AS l
            INNER JOIN mq.claimed AS c WITH (ROWLOCK) ON c.batch_key = @key AND c.id = l.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SET @took = @@ROWCOUNT;
            SET @count = @count + @took;
        END;
        IF @count > 0
        BEGIN
            IF @counted = 1 OR @in_groups = 1
                EXEC mq_internal.free_places @type, @part, NULL, @counted, @in_groups;
            IF NOT EXISTS (SELECT * FROM mq.claimed WHERE batch_key = @key)
                DELETE FROM mq.batch WHERE batch_key = @key;
            EXEC mq_internal.settle_listed @part, @type, @consumer, @listed;
            EXEC mq_internal.complete_messages @part, NULL, @type, @consumer, @done OUTPUT;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected;
END;

-- finish_rows: finish a batch of rows, or a part of it: all are done except for its failures.
-- Arguments:   @batch_key, @outcomes (a JSON object per line; error: the row failed; retry_after_seconds: when to retry
--              it, without it 5 seconds, doubled for each attempt up to an hour, with jitter; dead: 1 for never;
--              released: 1 gives it back), @keep_others (1: only what the list names is finished, and the others stay claimed;
--              NULL: 0)
-- Returns:     done, failed (to be retried, or given back), dead, gone (changed or deleted by others): counts of rows
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50008 lease_lost
-- Transaction: joins the caller's; waits for transactions that have locked these rows
-- Example:     EXEC mq.finish_rows '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', N'{"id":17,"error":"busy"}';
CREATE OR ALTER PROCEDURE mq.finish_rows
    @batch_key nvarchar(max),
    @outcomes nvarchar(max) = NULL,
    @keep_others bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: each statement must see what others have committed.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @key uniqueidentifier, @name nvarchar(400);
    DECLARE @done bigint = 0, @failed bigint = 0, @dead bigint = 0, @gone bigint = 0, @lost bigint, @took int = 1;
    DECLARE @keeps bit, @ready nvarchar(max), @status nvarchar(300), @most int, @from int = 1;
    DECLARE @refused bigint = 0, @again bigint, @died bigint, @problem varchar(200), @detail nvarchar(2000);
    DECLARE @lines TABLE (n int NOT NULL PRIMARY KEY, id bigint, retry int, error nvarchar(max), problem nvarchar(2000));
    BEGIN TRY
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.require_range 'keep_others', @keep_others, 0, 1;
        EXEC mq_internal.drop_polled_batch @batch_key, @keep_others, @key OUTPUT, @name OUTPUT;
        IF @name IS NULL
            EXEC mq_internal.raise_error 'lease_lost',
                N'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim';
        ELSE
        BEGIN
            EXEC mq_internal.require_rights @name, 1;
            SELECT @ready = ready_value, @status = status_column, @most = max_attempts,
                @keeps = CASE WHEN status_column IS NULL AND on_complete = 'keep' THEN 1 ELSE 0 END
            FROM mq.polled WHERE name = @name;
            WHILE @took > 0 AND COALESCE(@keep_others, 0) = 0
            BEGIN
                UPDATE TOP (1000) e
                SET todo = 'D', hit = 0, refused = 0, retry = NULL
                FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
                WHERE e.batch_key = @key AND e.todo IS NULL;
                SET @took = @@ROWCOUNT;
            END;
            SET @took = 1;
            IF DATALENGTH(@outcomes) > 0
            BEGIN
                INSERT INTO @lines (n, id, retry, error, problem)
                SELECT n, id, retry, error, LEFT(problem, 1000) FROM mq_internal.read_outcomes(@outcomes);
                SELECT TOP (1) @detail = problem FROM @lines WHERE problem IS NOT NULL ORDER BY n;
                IF @detail IS NOT NULL
                    EXEC mq_internal.raise_error 'invalid_argument', @detail;
                -- Without a status, nothing is written to a failed row.
                WHILE @from <= (SELECT MAX(n) FROM @lines)
                BEGIN
                    UPDATE e
                    SET todo = CASE
                            WHEN l.retry = -2 THEN 'L' WHEN l.error IS NULL THEN 'D' WHEN @status IS NULL THEN 'Z'
                            WHEN l.retry = -1 OR e.attempts >= @most THEN 'X' ELSE 'F'
                        END,
                        hit = 0, refused = 0, retry = l.retry, error = COALESCE(LEFT(l.error, 4000), e.error)
                    FROM @lines AS l
                    INNER JOIN mq.polled_row AS e WITH (ROWLOCK) ON e.id = l.id
                    WHERE l.n BETWEEN @from AND @from + 999 AND (l.error IS NOT NULL OR l.retry = -2 OR @keep_others = 1)
                        AND e.batch_key = @key
                    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                    SET @from = @from + 1000;
                END;
            END;
            IF @keeps = 0
            BEGIN
                EXEC mq_internal.write_rows @name, @key, @ready, 0, @problem OUTPUT, @detail OUTPUT;
                IF @problem IS NOT NULL
                    EXEC mq_internal.raise_error @problem, @detail;
            END;
            WHILE @took > 0
            BEGIN
                DELETE TOP (1000) e
                FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
                WHERE e.batch_key = @key AND e.todo = 'D' AND ((e.hit = 1 AND e.refused = 0) OR @keeps = 1);
                SELECT @took = @@ROWCOUNT, @done = @done + @@ROWCOUNT;
            END;
            SET @took = 1;
            WHILE @took > 0
            BEGIN
                DELETE TOP (1000) e
                FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
                WHERE e.batch_key = @key AND e.todo = 'D' AND e.refused = 0;
                SELECT @took = @@ROWCOUNT, @gone = @gone + @@ROWCOUNT;
            END;
            EXEC mq_internal.fail_rows @name, @key, 1, @failed OUTPUT, @dead OUTPUT, @lost OUTPUT;
            SET @gone = @gone + @lost;
            -- A row that the table refuses has failed.
            SET @took = 1;
            WHILE @took > 0
            BEGIN
                UPDATE TOP (1000) e
                SET todo = 'Z', hit = 0, refused = 0
                FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
                WHERE e.batch_key = @key AND e.todo = 'D';
                SELECT @took = @@ROWCOUNT, @refused = @refused + @@ROWCOUNT;
            END;
            IF @refused > 0
            BEGIN
                EXEC mq_internal.fail_rows @name, @key, 0, @again OUTPUT, @died OUTPUT, @lost OUTPUT;
                SELECT @failed = @failed + @again, @dead = @dead + @died, @gone = @gone + @lost;
            END;
            IF NOT EXISTS (SELECT * FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch)) WHERE batch_key = @key)
                DELETE FROM mq.polled_batch WHERE batch_key = @key;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @done AS done, @failed AS failed, @dead AS dead, @gone AS gone;
END;

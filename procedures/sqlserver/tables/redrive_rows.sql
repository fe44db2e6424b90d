-- redrive_rows: retry dead rows of a polling table, with their attempts set back to 0.
-- Arguments:   @name (1 to 200 characters), @id (of one row, as peek_rows lists it; NULL: all, those that died first), @size (1
--              to 10,000; NULL: 1,000)
-- Returns:     affected: rows that will be retried
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for claims of the table and for transactions that have locked these rows
-- Example:     EXEC mq.redrive_rows N'orders';
CREATE OR ALTER PROCEDURE mq.redrive_rows
    @name nvarchar(max),
    @id bigint = NULL,
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @key uniqueidentifier = NEWID(), @table nvarchar(400);
    DECLARE @error nvarchar(max), @status nvarchar(300), @count bigint = 0, @problem varchar(200), @detail nvarchar(2000);
    DECLARE @now datetime2(7), @took int = 1;
    BEGIN TRY
        EXEC mq_internal.require_name 'name', @name, 0;
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        SET @table = @name;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.lock_polled @table;
        EXEC mq_internal.require_rights @table, 1;
        SELECT @error = error_value, @status = status_column, @now = SYSUTCDATETIME() FROM mq.polled WHERE name = @table;
        SET @size = COALESCE(@size, 1000);
        WHILE @took > 0 AND @count < @size
        BEGIN
            UPDATE e
            SET batch_key = @key, todo = 'Y', hit = 0, refused = 0
            FROM (
                SELECT TOP (CASE WHEN @size - @count < 1000 THEN @size - @count ELSE 1000 END) id
                FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_due))
                WHERE name = @table AND state = 'E' AND id = COALESCE(@id, id) AND batch_key IS NULL
                ORDER BY run_at, id
            ) AS d
            INNER JOIN mq.polled_row AS e WITH (ROWLOCK) ON e.id = d.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SET @took = @@ROWCOUNT;
            IF @took > 0 AND @status IS NOT NULL
            BEGIN
                EXEC mq_internal.write_rows @table, @key, @error, 0, @problem OUTPUT, @detail OUTPUT;
                IF @problem IS NOT NULL
                    EXEC mq_internal.raise_error @problem, @detail;
                DELETE e
                FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
                WHERE e.batch_key = @key AND e.todo = 'Y' AND e.hit <> 1;
                -- Rows whose new status the table refuses stay dead.
                UPDATE e
                SET todo = 'Z'
                FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
                WHERE e.batch_key = @key AND e.todo = 'Y' AND e.refused = 1;
            END;
            UPDATE e
            SET state = 'N', attempts = 0, run_at = @now, active = 0, batch_key = NULL, todo = NULL, hit = 0, row_json = NULL
            FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
            WHERE e.batch_key = @key AND e.todo = 'Y';
            SET @count = @count + @@ROWCOUNT;
        END;
        SET @took = 1;
        WHILE @took > 0
        BEGIN
            UPDATE TOP (1000) e
            SET batch_key = NULL, todo = NULL, hit = 0, refused = 0
            FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
            WHERE e.batch_key = @key;
            SET @took = @@ROWCOUNT;
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

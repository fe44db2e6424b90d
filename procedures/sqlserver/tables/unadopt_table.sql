-- unadopt_table: forget a polling table: claimed rows get their ready_value back, and no more rows are claimed.
-- Arguments:   @name (1 to 200 characters)
-- Returns:     affected: 1; 0 when there is no such polling table
-- Errors:      50002 invalid_argument, 50006 unsuitable_table (the caller may not change the table)
-- Transaction: joins the caller's; waits for claims of the table and for transactions that have locked claimed rows
-- Example:     EXEC mq.unadopt_table N'orders';
CREATE OR ALTER PROCEDURE mq.unadopt_table
    @name nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @key uniqueidentifier = NEWID(), @table nvarchar(400);
    DECLARE @ready nvarchar(max), @count bigint = 0, @took int = 1, @there int, @problem varchar(200), @detail nvarchar(2000);
    DECLARE @batches TABLE (batch_key uniqueidentifier NOT NULL PRIMARY KEY);
    BEGIN TRY
        EXEC mq_internal.require_name 'name', @name, 0;
        SET @table = @name;
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @count = COUNT(*) FROM mq.polled_place WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE name = @table;
        IF @count > 0
        BEGIN
            SELECT @ready = ready_value, @there = mq_internal.table_facts(CONCAT(QUOTENAME(table_schema), N'.', QUOTENAME(table_name)))
            FROM mq.polled WHERE name = @table;
            -- To release a table that was dropped, the role is enough.
            IF @there > 0
                EXEC mq_internal.require_rights @table, 1;
            -- Read the keys first, then delete each row by its primary key, to avoid deadlocks.
            INSERT INTO @batches (batch_key) SELECT batch_key FROM mq.polled_batch WITH (ROWLOCK, READCOMMITTEDLOCK) WHERE name = @table;
            DELETE b FROM @batches AS k INNER JOIN mq.polled_batch AS b WITH (ROWLOCK) ON b.batch_key = k.batch_key
            OPTION (FORCE ORDER, LOOP JOIN);
            WHILE @took > 0
            BEGIN
                UPDATE TOP (1000) e
                SET batch_key = @key, todo = 'L', hit = 0, refused = 0
                FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_due))
                WHERE e.name = @table AND e.active = 1 AND e.state <> 'E' AND e.todo IS NULL;
                SET @took = @@ROWCOUNT;
            END;
            -- Nothing is written if the table was dropped. reset_active also finds claimed rows without an entry, and works
            -- after a column was changed, because it reads only the status.
            EXEC mq_internal.write_rows @table, @key, @ready, 0, @problem OUTPUT, @detail OUTPUT;
            EXEC mq_internal.reset_active @table;
            SET @took = 1;
            WHILE @took > 0
            BEGIN
                DELETE TOP (1000) e
                FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_due))
                WHERE e.name = @table;
                SET @took = @@ROWCOUNT;
            END;
            DELETE FROM mq.polled_mark WHERE name = @table;
            DELETE FROM mq.polled WHERE name = @table;
            DELETE FROM mq.polled_place WHERE name = @table;
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

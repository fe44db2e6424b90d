-- take_due: claim the rows of entries that are due again, as far as they are there and nobody has locked them.
-- Arguments:   @name (the adopted table), @key (the batch; its entries of state N, with a todo of P or X), @reader
-- Returns:     @count: how many are claimed; entries whose row is gone are deleted, those that have no attempt left are dead
-- Errors:      50005 not_found, 50006 unsuitable_table, when the table or a column is not there any more
-- Transaction: joins the caller's, which is READ COMMITTED; passes over rows that others have locked
-- Example:     EXEC mq.take_due N'orders', @key, N'worker-1', @count OUTPUT;

CREATE OR ALTER PROCEDURE mq.take_due
    @name nvarchar(400),
    @key uniqueidentifier,
    @reader nvarchar(400),
    @count int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @ready nvarchar(max), @status nvarchar(300), @problem varchar(200), @detail nvarchar(2000);
    DECLARE @shape char(1), @object_id int, @quoted nvarchar(600), @ident nvarchar(max), @fields nvarchar(max);
    DECLARE @list nvarchar(max);
    DECLARE @match nvarchar(max), @value nvarchar(400), @dirty nvarchar(60) = N'', @statement nvarchar(max);
    DECLARE @active nvarchar(max), @also nvarchar(max) = N'';
    DECLARE @failed bigint, @dead bigint, @gone bigint;
    SELECT @ready = ready_value, @active = active_value FROM mq.polled WHERE name = @name;
    EXEC mq.write_rows @name, @key, @ready, 1, @problem OUTPUT, @detail OUTPUT;
    IF @problem IS NULL AND EXISTS (SELECT * FROM mq.polled_row WHERE batch_key = @key AND state = 'N' AND hit <> 1)
    BEGIN
        -- There with another status, or not there at all: gone. The rest is locked, and left for the next claim. Who has locked it is
        -- not waited for, so without row versions it is looked for as he leaves it.
        EXEC mq.polled_shape @name, @shape OUTPUT, @object_id OUTPUT, @quoted OUTPUT, @status OUTPUT, @value OUTPUT,
            @problem OUTPUT, @detail OUTPUT;
        SELECT @list = COALESCE(key_columns, ident_columns) FROM mq.polled WHERE name = @name;
        SELECT @ident = mq.row_identity(@object_id, @list, NULL, 'json'),
            @fields = mq.row_identity(@object_id, @list, NULL, 'fields'),
            @match = mq.row_identity(@object_id, @list, NULL, 'match');
        IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
            SET @dirty = N' WITH (READUNCOMMITTED)';
        IF @shape = 'c'
            SET @also = CONCAT(N' AND ((e.active = 1 AND t.', @status, N' = ', REPLACE(@value, N'?', N'@active'),
                N') OR (e.active = 0 AND t.', @status, CASE
                    WHEN @ready IS NULL THEN N' IS NULL' ELSE CONCAT(N' = ', REPLACE(@value, N'?', N'@ready'))
                END, N'))');
        CREATE TABLE #mq_due (
            id bigint NOT NULL PRIMARY KEY, active bit NOT NULL, there bit NOT NULL, ident_hash varbinary(32) NOT NULL,
            ident nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL
        );
        INSERT INTO #mq_due (id, active, there, ident_hash, ident)
        SELECT id, active, 0, ident_hash, ident FROM mq.polled_row WHERE batch_key = @key AND state = 'N' AND hit = 0;
        SET @statement = CONCAT(N'UPDATE e
SET there = 1
FROM #mq_due AS e
CROSS APPLY OPENJSON(e.ident) WITH (', @fields, N') AS r
WHERE EXISTS (
    SELECT * FROM ', @quoted, N' AS t', @dirty, N' WHERE ', @match, N' AND HASHBYTES(''SHA2_256'', ', @ident, N') = e.ident_hash', @also, N'
);');
        EXEC sp_executesql @statement, N'@ready nvarchar(max), @active nvarchar(max)', @ready = @ready, @active = @active;
        DELETE e
        FROM mq.polled_row AS e
        LEFT JOIN #mq_due AS d ON d.id = e.id
        WHERE e.batch_key = @key AND e.state = 'N' AND (e.hit = 2 OR (e.hit = 0 AND d.there = 0));
    END;
    IF @problem IS NOT NULL
        EXEC mq.raise_error @problem, @detail;
    UPDATE mq.polled_row SET batch_key = NULL, todo = NULL WHERE batch_key = @key AND state = 'N' AND hit <> 1;
    EXEC mq.fail_rows @name, @key, 1, @failed OUTPUT, @dead OUTPUT, @gone OUTPUT;
    UPDATE mq.polled_row
    SET state = 'A', attempts = attempts + 1, reader = @reader, todo = 'P'
    WHERE batch_key = @key AND state = 'N';
    EXEC mq.take_new @name, @key, @count OUTPUT;
END;
GO

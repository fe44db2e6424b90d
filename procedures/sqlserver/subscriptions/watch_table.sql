-- watch_table: create the trigger that sends messages when a table changes; another call repairs it.
-- Arguments:   @table (table or schema.table, default schema: dbo; it needs a primary key)
-- Returns:     statement: no rows, because this call creates the trigger
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for transactions that use the table, and they wait for its end
-- Example:     EXEC mq.watch_table N'sales.orders';
--
-- One trigger reports all actions. It is created with the rights of the caller, who needs ALTER on the table. Writers need
-- no right on the queue: if the table has the queue's owner, ownership chaining covers it. Otherwise the trigger runs as
-- mq_reporter, a user without a login. It may only send such messages, because the table's owner controls what the columns
-- contain.
CREATE OR ALTER PROCEDURE mq.watch_table
    @table nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @object_id int, @schema nvarchar(128), @name nvarchar(128);
    DECLARE @quoted nvarchar(600), @label nvarchar(300), @keys nvarchar(max), @id int, @detail nvarchar(2000);
    DECLARE @owner nvarchar(300), @n int = 1, @column nvarchar(300), @made nvarchar(128);
    DECLARE @pieces mq.pieces;
    BEGIN TRY
        EXEC mq_internal.find_table 'table', @table, @object_id OUTPUT, @schema OUTPUT, @name OUTPUT, @quoted OUTPUT, @label OUTPUT;
        IF CHARINDEX(N'.', @schema + @name) > 0
            EXEC mq_internal.raise_error 'unsuitable_table',
                N'{} has a dot in its name or schema: messages could not distinguish it from a table of another schema', @label;
        WHILE @n > 0
        BEGIN
            SET @column = NULL;
            SELECT @column = c.quoted
            FROM sys.indexes AS i
            INNER JOIN sys.index_columns AS x ON x.object_id = i.object_id AND x.index_id = i.index_id
            INNER JOIN mq_internal.columns_of(@object_id, NULL) AS c ON c.column_id = x.column_id
            WHERE i.object_id = @object_id AND i.is_primary_key = 1 AND x.key_ordinal = @n;
            IF @column IS NULL
                BREAK;
            SET @keys = CONCAT(@keys + N', ', @column);
            SET @n = @n + 1;
        END;
        IF @keys IS NULL
            EXEC mq_internal.raise_error 'unsuitable_table', N'{} has no primary key: messages identify rows by it', @label;
        -- Only columns that the server itself converts to text: the trigger must not run a user's function.
        SELECT TOP (1) @made = c.name
        FROM mq_internal.columns_of(@object_id, @keys) AS c
        INNER JOIN sys.columns AS s ON s.object_id = @object_id AND s.column_id = c.column_id
        INNER JOIN sys.types AS y ON y.user_type_id = s.user_type_id
        WHERE s.is_computed = 1 OR (y.is_assembly_type = 1 AND y.is_user_defined = 1)
        ORDER BY c.n;
        IF @made IS NOT NULL
            SET @detail = CONCAT(@label, N' has a key column that is computed or of a .NET type: ', @made);
        ELSE IF HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'ALTER') = 0
        BEGIN
            INSERT INTO @pieces (name, piece) VALUES ('table', @quoted), ('user', QUOTENAME(CAST(USER_NAME() AS nvarchar(128))));
            SET @detail = mq_internal.fill(N'{user} must hold ALTER on {table}: GRANT ALTER ON {table} TO {user}', @pieces);
        END;
        SELECT @owner = N'WITH EXECUTE AS ''mq_reporter'''
        FROM sys.schemas AS q
        INNER JOIN sys.objects AS t ON t.object_id = @object_id
        INNER JOIN sys.schemas AS s ON s.schema_id = t.schema_id
        WHERE q.name = N'mq' AND q.principal_id <> COALESCE(t.principal_id, s.principal_id);
        IF @detail IS NULL AND @owner IS NOT NULL AND COALESCE(HAS_PERMS_BY_NAME(N'mq_reporter', 'USER', 'IMPERSONATE'), 0) = 0
            SET @detail = CONCAT(@label, N' has another owner than the queue: a member of db_owner must call watch_table');
        IF @detail IS NOT NULL
            EXEC mq_internal.raise_error 'unsuitable_table', @detail;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.wait_for_lock 'watch_table', N'', N'';
        SELECT @id = id
        FROM mq.watched WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (watched_table_once))
        WHERE table_schema = @schema AND table_name = @name;
        IF @id IS NULL
        BEGIN
            INSERT INTO mq.watched (table_schema, table_name) VALUES (@schema, @name);
            SET @id = SCOPE_IDENTITY();
        END;
        EXEC mq_internal.make_trigger @object_id, @keys, @owner, @id;
        IF @own = 1
            COMMIT TRANSACTION;
        SELECT CAST(N'' AS nvarchar(max)) AS statement WHERE 1 = 0;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

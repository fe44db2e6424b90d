-- create_feed: create a feed from a table: its rows, numbered in the order in which they are published.
-- Arguments:   @feed (1 to 200 characters), @table (table or schema.table; default schema: dbo), @key_columns (1 to 100
--              names separated by commas; they include all columns of a primary key or unique index), @sync_column (a bigint
--              column that allows NULL; an index begins with it)
-- Returns:     created: 1; 0 when the same feed already exists
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's; calls wait for each other
-- Example:     EXEC mq.create_feed N'orders', N'sales.orders', N'id', N'sync';
--
-- Later calls read and number the table with the rights of their own callers: this call grants nothing.
CREATE OR ALTER PROCEDURE mq.create_feed
    @feed nvarchar(max),
    @table nvarchar(max),
    @key_columns nvarchar(max),
    @sync_column nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @id nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @created smallint = 1;
    DECLARE @object_id int, @schema nvarchar(128), @name nvarchar(128), @quoted nvarchar(600), @label nvarchar(300);
    DECLARE @keys nvarchar(4000), @sync nvarchar(300), @type nvarchar(128), @nullable bit, @computed bit, @number int;
    DECLARE @syncs nvarchar(4000), @highest bigint, @same bit, @other nvarchar(400), @detail nvarchar(2000);
    DECLARE @statement nvarchar(max);
    DECLARE @pieces mq.pieces;
    BEGIN TRY
        EXEC mq_internal.require_name 'feed', @feed, 0;
        SET @id = @feed;
        EXEC mq_internal.find_table 'table', @table, @object_id OUTPUT, @schema OUTPUT, @name OUTPUT, @quoted OUTPUT, @label OUTPUT;
        EXEC mq_internal.find_columns 'key_columns', @object_id, @key_columns, @keys OUTPUT;
        EXEC mq_internal.find_columns 'sync_column', @object_id, @sync_column, @syncs OUTPUT;
        IF (SELECT COUNT(*) FROM mq_internal.columns_of(@object_id, @syncs)) > 1 OR EXISTS (
            SELECT * FROM mq_internal.columns_of(@object_id, @keys) WHERE quoted = @syncs
        )
            EXEC mq_internal.raise_error 'invalid_argument', N'sync_column: must be one column that is not in key_columns';
        SET @sync = @syncs;
        SELECT @number = column_id, @type = type, @nullable = nullable FROM mq_internal.columns_of(@object_id, @sync);
        SELECT @computed = is_computed FROM sys.columns WHERE object_id = @object_id AND column_id = @number;

        SET @detail = mq_internal.missing_rights(@quoted, 1, 0);
        IF @detail IS NULL AND EXISTS (SELECT * FROM sys.columns WHERE object_id = @object_id AND encryption_type IS NOT NULL)
            SET @detail = @quoted + N' has an encrypted column: the server cannot read its rows';
        IF @detail IS NOT NULL
            EXEC mq_internal.raise_error 'unsuitable_table', @detail;
        INSERT INTO @pieces (name, piece)
        VALUES ('label', @label), ('table', @quoted), ('sync', @sync), ('index', QUOTENAME(LEFT(@name, 110) + N'_sync'));
        IF mq_internal.has_key(@object_id, @keys) = 0
            SET @detail = N'key_columns: must include all columns of the primary key of {label}, '
                + N'or of a unique index of NOT NULL columns';
        ELSE IF @computed = 1
            SET @detail = N'sync_column: must not be a computed column: ALTER TABLE {table} ADD sync bigint NULL';
        ELSE IF @type <> N'bigint' OR @nullable = 0
            SET @detail = N'sync_column: must be a bigint column that allows NULL: '
                + N'ALTER TABLE {table} ALTER COLUMN {sync} bigint NULL';
        ELSE IF mq_internal.index_hint(@object_id, @sync) IS NULL
            SET @detail = N'sync_column: needs an index: CREATE INDEX {index} ON {table} ({sync})';
        SET @detail = mq_internal.fill(@detail, @pieces);
        IF @detail IS NOT NULL
            EXEC mq_internal.raise_error 'unsuitable_table', @detail;

        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.wait_for_lock 'create_feed', N'', N'';
        SELECT @same = CASE
            WHEN table_schema = @schema AND table_name = @name AND key_columns = @keys AND sync_column = @sync THEN 1 ELSE 0
        END
        FROM mq.feed WITH (ROWLOCK, READCOMMITTEDLOCK)
        WHERE name = @id;
        SELECT @other = name
        FROM mq.feed WITH (ROWLOCK, READCOMMITTEDLOCK)
        WHERE name <> @id AND table_schema = @schema AND table_name = @name AND sync_column = @sync;
        IF @same = 0
            EXEC mq_internal.raise_error 'already_exists', N'feed: {} exists with other columns or another table: drop_feed first', @id;
        IF @other IS NOT NULL
            EXEC mq_internal.raise_error 'unsuitable_table', N'sync_column: already used by feed {}', @other;
        IF @same = 1
            SET @created = 0;
        ELSE
        BEGIN
            -- A feed that is created again continues above the highest number in the table.
            INSERT INTO @pieces (name, piece) VALUES ('hint', mq_internal.index_hint(@object_id, @sync));
            SET @statement = mq_internal.fill(N'SELECT @highest = MAX({sync}) FROM {table} WITH (ROWLOCK, READCOMMITTEDLOCK{hint}) WHERE {sync} IS NOT NULL;', @pieces);
            EXEC sp_executesql @statement, N'@highest bigint OUTPUT', @highest = @highest OUTPUT;
            INSERT INTO mq.feed (name, table_schema, table_name, key_columns, sync_column)
            VALUES (@id, @schema, @name, @keys, @sync);
            INSERT INTO mq.feed_counter (feed, last_number) VALUES (@id, CASE WHEN @highest > 0 THEN @highest ELSE 0 END);
        END;
        IF @own = 1
            COMMIT TRANSACTION;
        SELECT @created AS created;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

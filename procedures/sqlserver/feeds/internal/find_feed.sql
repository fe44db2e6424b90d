-- find_feed: return a feed, with its table and columns ready for SQL.
-- Arguments: @feed, @change (1: the caller will number rows)
-- Returns: @object_id, @quoted (the table), @keys and @sync (columns, quoted), @hint (forces the index on the sync
--     column; empty: the index was dropped)
--
-- The table is read and changed with the rights of the caller.
CREATE OR ALTER PROCEDURE mq_internal.find_feed
    @feed nvarchar(400), @change bit, @object_id int OUTPUT, @quoted nvarchar(600) OUTPUT, @keys nvarchar(4000) OUTPUT,
    @sync nvarchar(300) OUTPUT, @hint nvarchar(300) OUTPUT
AS
BEGIN
    DECLARE @schema nvarchar(128), @name nvarchar(128), @lost nvarchar(400), @detail nvarchar(2000);
    DECLARE @pieces mq.pieces;
    EXEC mq_internal.use_feed @feed, @change;
    SELECT @schema = table_schema, @name = table_name, @keys = key_columns, @sync = sync_column FROM mq.feed WHERE name = @feed;
    SET @quoted = CONCAT(QUOTENAME(@schema), N'.', QUOTENAME(@name));
    SET @object_id = OBJECT_ID(@quoted, N'U');
    SELECT TOP (1) @lost = l.name
    FROM mq_internal.split_names(CONCAT(@keys, N', ', @sync), N',') AS l
    WHERE COLUMNPROPERTY(@object_id, l.name, 'ColumnId') IS NULL
    ORDER BY l.n;
    IF @lost IS NOT NULL
    BEGIN
        INSERT INTO @pieces (name, piece) VALUES ('table', @quoted), ('column', @lost);
        SET @detail = mq_internal.fill(N'{table} has no column {column} any more: drop_feed, then create_feed again', @pieces);
        EXEC mq_internal.raise_error 'unsuitable_table', @detail;
    END;
    -- A computed column is a program of the table's owner.
    IF NOT EXISTS (
        SELECT *
        FROM mq_internal.columns_of(@object_id, @sync) AS c
        INNER JOIN sys.columns AS s ON s.object_id = @object_id AND s.column_id = c.column_id
        WHERE c.type = N'bigint' AND s.is_computed = 0
    )
        EXEC mq_internal.raise_error 'unsuitable_table',
            N'the sync column of {} is computed or no bigint: drop_feed, then create_feed again', @quoted;
    SELECT @hint = COALESCE(mq_internal.index_hint(@object_id, @sync), N'');
END;

-- find_watched: find the watched table that an argument names, for a caller with a right on it.
-- Arguments: @table (table or schema.table, default schema: dbo; a dropped table: as messages name it), @right (SELECT
--     or ALTER; NULL: none)
-- Returns: @watched_id, @object_id (NULL: dropped; without @right also if the caller may not see it), @schema, @label
CREATE OR ALTER PROCEDURE mq_internal.find_watched
    @table nvarchar(max), @right varchar(10), @watched_id int OUTPUT, @object_id int OUTPUT,
    @schema nvarchar(128) OUTPUT, @label nvarchar(300) OUTPUT
AS
BEGIN
    DECLARE @parts int, @first nvarchar(400), @second nvarchar(400), @detail nvarchar(2000), @quoted nvarchar(600);
    DECLARE @pieces mq.pieces;
    SELECT @parts = MAX(n), @first = MAX(CASE n WHEN 1 THEN name ELSE N'' END), @second = MAX(CASE n WHEN 2 THEN name ELSE N'' END)
    FROM mq_internal.split_names(@table, N'.');
    IF @parts NOT IN (1, 2)
    BEGIN
        SET @detail = CONCAT(N'table: must be the name of a table, with its schema and a dot before it or without; ',
            N'a name has up to 200 characters and stands in double quotes or brackets unless it is a plain one');
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
    END;
    IF @parts = 1
        SELECT @second = @first, @first = N'dbo';
    SET @object_id = OBJECT_ID(QUOTENAME(@first) + N'.' + QUOTENAME(@second), N'U');
    -- Use the catalog's spelling. A dropped table is found by its name in messages.
    SELECT @first = SCHEMA_NAME(schema_id), @second = name FROM sys.tables WHERE object_id = @object_id;
    SET @watched_id = NULL;
    SELECT @watched_id = id, @schema = table_schema, @quoted = CONCAT(QUOTENAME(table_schema), N'.', QUOTENAME(table_name))
    FROM mq.watched WITH (ROWLOCK, FORCESEEK, INDEX (watched_table_once))
    WHERE table_schema = @first AND table_name = @second;
    SET @label = CONCAT(CASE WHEN @first <> N'dbo' THEN @first + N'.' END, @second);
    IF @watched_id IS NULL
        EXEC mq_internal.raise_error 'not_found', N'table: {} is not watched: call watch_table first', @label;
    -- To a caller who may not see it, the table looks dropped: mq_internal.table_facts tests whether it exists.
    IF @right IS NOT NULL AND mq_internal.table_facts(@quoted) <> 0 AND COALESCE(HAS_PERMS_BY_NAME(@quoted, 'OBJECT', @right), 0) = 0
    BEGIN
        INSERT INTO @pieces (name, piece)
        VALUES ('right', @right), ('table', @quoted), ('user', QUOTENAME(CAST(USER_NAME() AS nvarchar(128))));
        SET @detail = mq_internal.fill(N'{user} must hold {right} on {table}: GRANT {right} ON {table} TO {user}', @pieces);
        EXEC mq_internal.raise_error 'unsuitable_table', @detail;
    END;
END;

-- require_claimable: refuse a table whose rows cannot be claimed with these settings.
-- Arguments: @object_id, @quoted and @label (the table), @keys, @order and @status (columns, quoted, or NULL), @delete
--     (1: delete done rows), @equal_rows (1: accept equal rows without a key), @late_seconds
CREATE OR ALTER PROCEDURE mq_internal.require_claimable
    @object_id int, @quoted nvarchar(600), @label nvarchar(300), @keys nvarchar(4000), @order nvarchar(300),
    @status nvarchar(300), @delete bit, @equal_rows bit, @late_seconds bigint
AS
BEGIN
    DECLARE @bad nvarchar(400), @column nvarchar(4000), @wanted nvarchar(max), @detail nvarchar(2000);
    DECLARE @pieces mq.pieces;
    DECLARE @update bit = CASE WHEN @status IS NULL THEN 0 ELSE 1 END;
    SELECT TOP (1) @bad = name FROM mq_internal.column_texts(@object_id, @keys)
    WHERE (@keys IS NULL AND quoted <> COALESCE(@status, N'') AND changes = 0
        AND (written IS NULL OR type IN (N'float', N'real')))
        OR (@keys IS NOT NULL AND (written IS NULL OR changes = 1))
    ORDER BY n;
    SET @column = COALESCE(@order, @keys);
    SET @wanted = CASE
        WHEN @status IS NOT NULL THEN CONCAT(@status, N', ' + @column)
        WHEN @keys IS NOT NULL OR @delete = 0 THEN @column
    END;
    IF @keys IS NULL AND @equal_rows = 0
        SET @detail = N'equal rows of {table} cannot be distinguished: give key_columns, or equal_rows 1 to accept this';
    ELSE IF @bad IS NOT NULL AND @keys IS NULL
        SET @detail = N'key_columns: needed, because {bad} of {table} cannot be compared';
    ELSE IF @bad IS NOT NULL
        SET @detail = N'key_columns: {bad} of {table} cannot be compared, or the server changes it';
    ELSE IF @keys IS NOT NULL AND mq_internal.has_key(@object_id, @keys) = 0
        SET @detail = N'key_columns: must include all columns of the primary key of {table}, '
            + N'or of a unique index of NOT NULL columns';
    ELSE IF @status IS NULL AND @delete = 0 AND @late_seconds IS NULL
        SET @detail = N'without a status, rows of {table} that commit late are missed: '
            + N'give late_seconds, the longest delay, or 0 to accept this';
    ELSE IF @status IS NULL AND @delete = 0 AND @order IS NULL
        AND (@keys IS NULL OR (SELECT COUNT(*) FROM mq_internal.columns_of(@object_id, @keys)) <> 1)
        SET @detail = N'order_column: needed without a status and with keep, unless there is exactly one key column';
    ELSE IF @status IS NULL AND @delete = 0 AND NOT EXISTS (
        SELECT * FROM mq_internal.column_texts(@object_id, @column)
        WHERE nullable = 0 AND changes = 0 AND written IS NOT NULL
            AND type NOT IN (N'bit', N'uniqueidentifier', N'binary', N'varbinary')
    )
        SET @detail = N'order_column: {column} must be NOT NULL, and a number, a text or a time';
    ELSE IF @wanted IS NOT NULL AND mq_internal.index_hint(@object_id, @wanted) IS NULL
        SET @detail = N'without this index claims would scan the table: CREATE INDEX {index} ON {quoted} ({wanted})';
    INSERT INTO @pieces (name, piece)
    VALUES ('table', @label), ('bad', @bad), ('column', @column), ('quoted', @quoted), ('wanted', @wanted),
        ('index', QUOTENAME(LEFT(CAST(OBJECT_NAME(@object_id) AS nvarchar(128)), 110) + N'_claim'));
    SET @detail = mq_internal.fill(@detail, @pieces);
    IF @detail IS NULL
        SET @detail = mq_internal.missing_rights(@quoted, @update, @delete);
    IF @detail IS NULL AND EXISTS (SELECT * FROM sys.columns WHERE object_id = @object_id AND encryption_type IS NOT NULL)
        SET @detail = @quoted + N' has an encrypted column: the server cannot read its rows';
    IF @detail IS NULL AND mq_internal.table_facts(@quoted) = 2
        SET @detail = @quoted + N' has a security policy that filters its rows: rows that it hides would look as if they were gone';
    IF @detail IS NOT NULL
        EXEC mq_internal.raise_error 'unsuitable_table', @detail;
END;

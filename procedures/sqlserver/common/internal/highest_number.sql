-- highest_number: the highest number in a column of a table.
-- Arguments: @object_id (the table), @column (quoted)
-- Returns: @highest (0: the column has no number)
CREATE OR ALTER PROCEDURE mq_internal.highest_number
    @object_id int, @column nvarchar(300), @highest bigint OUTPUT
AS
BEGIN
    DECLARE @quoted nvarchar(600), @name nvarchar(300), @statement nvarchar(max);
    DECLARE @pieces mq.pieces;
    -- Names from the catalog, because they become part of a statement.
    SELECT @quoted = CONCAT(
        QUOTENAME(CAST(OBJECT_SCHEMA_NAME(@object_id) AS nvarchar(128))), N'.', QUOTENAME(CAST(OBJECT_NAME(@object_id) AS nvarchar(128)))
    );
    SELECT @name = quoted FROM mq_internal.columns_of(@object_id, @column);
    INSERT INTO @pieces (name, piece) VALUES ('column', @name), ('table', @quoted), ('hint', mq_internal.index_hint(@object_id, @name));
    SET @statement = mq_internal.fill(N'SELECT @highest = MAX({column}) FROM {table} WITH (ROWLOCK, READCOMMITTEDLOCK{hint}) WHERE {column} IS NOT NULL;', @pieces);
    EXEC sp_executesql @statement, N'@highest bigint OUTPUT', @highest = @highest OUTPUT;
    SET @highest = CASE WHEN @highest > 0 THEN @highest ELSE 0 END;
END;

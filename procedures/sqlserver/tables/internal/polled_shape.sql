-- polled_shape: return how a polling table is read and written.
-- Arguments: @name (of the polling table)
-- Returns: @shape (a to f), @object_id, @quoted (the table), @status (the column, quoted) and @value (an expression for
--     a status; ? stands for its text); @problem and @detail: name and text of the error when the table or a column was
--     dropped or changed
CREATE OR ALTER PROCEDURE mq_internal.polled_shape
    @name nvarchar(400), @shape char(1) OUTPUT, @object_id int OUTPUT, @quoted nvarchar(600) OUTPUT,
    @status nvarchar(300) OUTPUT, @value nvarchar(400) OUTPUT, @problem varchar(200) OUTPUT,
    @detail nvarchar(2000) OUTPUT
AS
BEGIN
    DECLARE @keys nvarchar(4000), @list nvarchar(max), @order nvarchar(300), @delete bit, @types nvarchar(max);
    DECLARE @all nvarchar(max), @changed nvarchar(400);
    SELECT @quoted = CONCAT(QUOTENAME(table_schema), N'.', QUOTENAME(table_name)), @keys = key_columns,
        @list = COALESCE(key_columns, ident_columns), @order = order_column, @status = status_column, @types = column_types,
        @delete = CASE on_complete WHEN 'delete' THEN 1 ELSE 0 END
    FROM mq.polled WHERE name = @name;
    SELECT @object_id = OBJECT_ID(@quoted, N'U'), @value = NULL, @problem = NULL, @detail = NULL,
        @all = CONCAT(@list, N', ' + @order, N', ' + @status);
    IF @object_id IS NULL
    BEGIN
        SELECT @problem = 'not_found', @detail = CONCAT(N'table: there is no ', @quoted, N' any more');
        RETURN;
    END;
    IF mq_internal.column_types(@object_id, @all) <> @types COLLATE Latin1_General_100_BIN2
    BEGIN
        SELECT TOP (1) @changed = l.name
        FROM mq_internal.split_names(@all, N',') AS l
        WHERE l.n > 0 AND COLUMNPROPERTY(@object_id, l.name, 'ColumnId') IS NULL
        ORDER BY l.n;
        SELECT @problem = 'unsuitable_table',
            @detail = CONCAT(@quoted, COALESCE(N' has no column ' + @changed + N' any more',
                N' has a column of another type than when it was adopted'), N': unadopt_table, then adopt_table again');
    END;
    SET @shape = CASE
        WHEN @status IS NOT NULL THEN CASE WHEN @keys IS NULL THEN 'c' ELSE 'a' END
        WHEN @delete = 1 THEN CASE WHEN @keys IS NULL THEN 'f' ELSE 'e' END
        WHEN @keys IS NULL THEN 'd'
        ELSE 'b'
    END;
    SELECT @value = read_back FROM mq_internal.column_texts(@object_id, @status) WHERE @status IS NOT NULL;
END;

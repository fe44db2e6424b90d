-- polled_shape: the pieces of SQL that an adopted table is read and written by.
-- Arguments:   @name (the adopted table)
-- Returns:     @shape (a to f), @object_id, @quoted (the table), @columns (those that are a row's identity), @ident (their JSON, over
--              the alias t), @fields (what OPENJSON reads of it), @match (condition over t and those fields r), @status (the
--              column's name, quoted) and @value (a value of it; a question mark stands for its text); @problem and @detail: the
--              error's name and detail when the table or a column is not there any more
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     EXEC mq.polled_shape N'orders', @shape OUTPUT, @object_id OUTPUT, @quoted OUTPUT, @columns OUTPUT, @ident OUTPUT,
--              @fields OUTPUT, @match OUTPUT, @status OUTPUT, @value OUTPUT, @problem OUTPUT, @detail OUTPUT;

CREATE OR ALTER PROCEDURE mq.polled_shape
    @name nvarchar(400),
    @shape char(1) OUTPUT,
    @object_id int OUTPUT,
    @quoted nvarchar(600) OUTPUT,
    @columns nvarchar(max) OUTPUT,
    @ident nvarchar(max) OUTPUT,
    @fields nvarchar(max) OUTPUT,
    @match nvarchar(max) OUTPUT,
    @status nvarchar(300) OUTPUT,
    @value nvarchar(400) OUTPUT,
    @problem varchar(200) OUTPUT,
    @detail nvarchar(2000) OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @keys nvarchar(max), @order nvarchar(300), @delete bit, @missing nvarchar(400), @n int = 0, @count int;
    DECLARE @column nvarchar(300), @nullable bit, @of_text bit, @written nvarchar(400), @read nvarchar(400), @part nvarchar(max);
    DECLARE @parts TABLE (
        n int NOT NULL PRIMARY KEY, quoted nvarchar(300) NOT NULL, nullable bit NOT NULL, of_text bit NOT NULL,
        written nvarchar(400) NOT NULL, read_back nvarchar(400) NOT NULL
    );
    SELECT @quoted = CONCAT(N'[', REPLACE(table_schema, N']', N']]'), N'].[', REPLACE(table_name, N']', N']]'), N']'),
        @keys = key_columns, @order = order_column, @status = status_column,
        @delete = CASE on_complete WHEN 'delete' THEN 1 ELSE 0 END
    FROM mq.polled WHERE name = @name;
    SELECT @object_id = OBJECT_ID(@quoted, N'U'), @columns = NULL, @ident = NULL, @fields = NULL, @match = NULL, @value = NULL,
        @problem = NULL, @detail = NULL;
    IF @object_id IS NULL
    BEGIN
        SELECT @problem = 'not_found', @detail = CONCAT(N'table: there is no table ', @quoted, N' any more');
        RETURN;
    END;
    SELECT TOP (1) @missing = l.name
    FROM mq.split_names(CONCAT(COALESCE(@keys, @order, @status), N', ' + @order, N', ' + @status), N',') AS l
    WHERE l.n > 0 AND COLUMNPROPERTY(@object_id, l.name, 'ColumnId') IS NULL
    ORDER BY l.n;
    INSERT INTO @parts (n, quoted, nullable, of_text, written, read_back)
    SELECT ROW_NUMBER() OVER (ORDER BY c.n), c.quoted, c.nullable, c.of_text, c.written, c.read_back
    FROM mq.column_texts(@object_id, @keys) AS c
    WHERE c.written IS NOT NULL AND (@keys IS NOT NULL OR (c.changes = 0 AND c.quoted <> COALESCE(@status, N'')));
    SET @count = @@ROWCOUNT;
    IF @missing IS NOT NULL OR @count = 0
    BEGIN
        SELECT @problem = 'unsuitable_table', @detail = CONCAT(@quoted, N' has no column ', @missing, N' any more');
        RETURN;
    END;
    SET @shape = CASE
        WHEN @status IS NOT NULL THEN CASE WHEN @keys IS NULL THEN 'c' ELSE 'a' END
        WHEN @delete = 1 THEN CASE WHEN @keys IS NULL THEN 'f' ELSE 'e' END
        WHEN @keys IS NULL THEN 'd'
        ELSE 'b'
    END;
    WHILE @n < @count
    BEGIN
        SET @n = @n + 1;
        SELECT @column = N't.' + quoted, @nullable = nullable, @of_text = of_text, @written = written, @read = read_back,
            @columns = CONCAT(@columns + N', ', quoted)
        FROM @parts WHERE n = @n;
        SET @part = REPLACE(@written, N'?', @column);
        IF @of_text = 1
            SET @part = CONCAT(N'STRING_ESCAPE(', @part, N', ''json'')');
        SELECT @read = REPLACE(@read, N'?', CONCAT(N'r.k', @n)),
            @fields = CONCAT(@fields + N', ', N'k', @n, N' nvarchar(max) ''$.k', @n, N''''),
            -- Not all in one CONCAT: it takes 254 values, and a table has up to 1,024 columns.
            @ident = CONCAT(
                @ident,
                CASE WHEN @n % 40 = 1 THEN CONCAT(REPLICATE(N') + ', SIGN(@n - 1)), N'CONCAT(CAST(N'''' AS nvarchar(max))') END,
                N', N''', CASE @n WHEN 1 THEN N'{' ELSE N',' END, N'"k', @n, N'":'', ISNULL(N''"'' + ', @part,
                N' + N''"'', N''null'')'
            );
        SET @match = CONCAT(@match + N' AND ', CASE
            WHEN @nullable = 0 THEN CONCAT(@column, N' = ', @read)
            ELSE CONCAT(N'(', @column, N' = ', @read, N' OR (', @column, N' IS NULL AND r.k', @n, N' IS NULL))')
        END);
    END;
    SET @ident = @ident + N', N''}'')';
    SELECT @value = read_back FROM mq.column_texts(@object_id, @status) WHERE @status IS NOT NULL;
END;
GO

-- row_identity: return the SQL fragments that identify rows of a table, for dynamic SQL.
-- Arguments: @object_id (the table), @keys (the columns; NULL: all columns except those that the server changes),
--     @status (then a column to ignore, quoted, or NULL), @piece (json: the expression of the identity, over the alias
--     t; fields: what OPENJSON reads of it; match: the condition over t and those fields, r; list: the columns)
-- Returns: that piece
--
-- The condition finds rows by an index. The JSON decides whether they are the same row: to most collations different
-- texts can be equal.
CREATE OR ALTER FUNCTION mq_internal.row_identity (
    @object_id int, @keys nvarchar(max), @status nvarchar(300), @piece varchar(10)
)
RETURNS nvarchar(max)
AS
BEGIN
    DECLARE @json nvarchar(max), @fields nvarchar(max), @match nvarchar(max), @list nvarchar(max), @part nvarchar(max);
    DECLARE @column nvarchar(300), @nullable bit, @of_text bit, @written nvarchar(400), @read nvarchar(800), @n int = 0, @count int;
    DECLARE @parts TABLE (
        n int NOT NULL PRIMARY KEY, quoted nvarchar(300) NOT NULL, nullable bit NOT NULL, of_text bit NOT NULL,
        written nvarchar(400) NOT NULL, read_back nvarchar(400) NOT NULL
    );
    INSERT INTO @parts (n, quoted, nullable, of_text, written, read_back)
    SELECT ROW_NUMBER() OVER (ORDER BY c.n), c.quoted, c.nullable, c.of_text, c.written, c.read_back
    FROM mq_internal.column_texts(@object_id, @keys) AS c
    WHERE c.written IS NOT NULL AND (@keys IS NOT NULL OR (c.changes = 0 AND c.quoted <> COALESCE(@status, N'')));
    SELECT @count = COUNT(*) FROM @parts;
    WHILE @n < @count
    BEGIN
        SET @n = @n + 1;
        SELECT @column = N't.' + quoted, @list = CONCAT(@list + N', ', quoted), @nullable = nullable, @of_text = of_text,
            @written = written, @read = REPLACE(read_back, N'?', CONCAT(N'r.k', @n))
        FROM @parts WHERE n = @n;
        SET @part = REPLACE(@written, N'?', @column);
        IF @of_text = 1
            SET @part = CONCAT(N'STRING_ESCAPE(', @part, N', ''json'')');
        SELECT @fields = CONCAT(@fields + N', ', N'k', @n, N' nvarchar(max) ''$.k', @n, N''''),
            @match = CONCAT(@match + N' AND ', CASE
                WHEN @nullable = 0 THEN CONCAT(@column, N' = ', @read)
                ELSE CONCAT(N'(', @column, N' = ', @read, N' OR (', @column, N' IS NULL AND r.k', @n, N' IS NULL))')
            END),
            -- Several CONCATs: one takes at most 254 values, and a table has up to 1,024 columns.
            @json = CONCAT(
                @json,
                CASE WHEN @n % 40 = 1 THEN CONCAT(REPLICATE(N') + ', SIGN(@n - 1)), N'CONCAT(CAST(N'''' AS nvarchar(max))') END,
                N', N''', CASE @n WHEN 1 THEN N'{' ELSE N',' END, N'"k', @n, N'":'', ISNULL(N''"'' + ', @part,
                N' + N''"'', N''null'')'
            );
    END;
    RETURN CASE @piece
        WHEN 'json' THEN @json + N', N''}'')' WHEN 'fields' THEN @fields WHEN 'match' THEN @match ELSE @list
    END;
END;

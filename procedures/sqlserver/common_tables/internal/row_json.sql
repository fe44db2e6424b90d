-- row_json: the SQL expression that turns a row into JSON, for dynamic SQL.
-- Arguments: @object_id (the table), @list (columns, in output order; NULL: all), @alias (the table's alias in the
--     statement)
-- Returns: the expression, of type nvarchar(max); NULL when a column of the list does not exist
--
-- Numbers keep their digits. Times are ISO 8601 with the column's precision, and in UTC if they have a zone. bit is
-- true or false, binary is base64, json is unchanged, and any other type is its text. FOR JSON would do most of this,
-- but it reads a dot in a name as nesting, rounds float and keeps the zone.
CREATE OR ALTER FUNCTION mq_internal.row_json (@object_id int, @list nvarchar(max), @alias nvarchar(128))
RETURNS nvarchar(max)
AS
BEGIN
    DECLARE @row nvarchar(max), @value nvarchar(max), @template nvarchar(max), @name nvarchar(800), @type nvarchar(128), @scale int;
    DECLARE @count int, @n int = 1;
    DECLARE @columns TABLE (n int NOT NULL PRIMARY KEY, name nvarchar(128), quoted nvarchar(300), type nvarchar(128), scale int);
    INSERT INTO @columns (n, name, quoted, type, scale)
    SELECT n, name, quoted, type, scale FROM mq_internal.columns_of(@object_id, @list);
    SELECT @count = MAX(n) FROM @columns;
    IF @list IS NOT NULL
        SELECT @count = CASE COUNT(*) WHEN (SELECT COUNT(*) FROM @columns) THEN @count END FROM mq_internal.split_names(@list, N',');
    WHILE @n <= @count
    BEGIN
        SELECT @value = CONCAT(@alias, N'.', quoted), @name = name, @type = type, @scale = scale FROM @columns WHERE n = @n;
        IF @name LIKE N'%["\/' + NCHAR(1) + N'-' + NCHAR(31) + N']%' COLLATE Latin1_General_100_BIN2
            SET @name = STRING_ESCAPE(@name, 'json');
        SET @template = CASE
            WHEN @type = N'bit' THEN N'CASE {value} WHEN 1 THEN N''true'' WHEN 0 THEN N''false'' END'
            WHEN @type IN (N'tinyint', N'smallint', N'int', N'bigint', N'decimal', N'numeric')
                THEN N'CAST({value} AS nvarchar(41))'
            WHEN @type IN (N'money', N'smallmoney') THEN N'CAST(CAST({value} AS decimal(19, 4)) AS nvarchar(41))'
            -- Style 3 keeps all digits of a float.
            WHEN @type IN (N'float', N'real') THEN N'LTRIM(RTRIM(CONVERT(nvarchar(41), {value}, 3)))'
            WHEN @type = N'json' THEN N'CAST({value} AS nvarchar(max))'
            WHEN @type = N'date' THEN N'N''"'' + CONVERT(nvarchar(41), {value}, 23) + N''"'''
            WHEN @type = N'time' THEN N'N''"'' + CAST({value} AS nvarchar(41)) + N''"'''
            WHEN @type IN (N'datetime', N'datetime2')
                THEN N'N''"'' + REPLACE(CONVERT(nvarchar(41), {value}, 121), N'' '', N''T'') + N''"'''
            WHEN @type = N'smalldatetime'
                THEN N'N''"'' + REPLACE(CONVERT(nvarchar(19), {value}, 120), N'' '', N''T'') + N''"'''
            WHEN @type = N'datetimeoffset'
                THEN N'N''"'' + REPLACE(CONVERT(nvarchar(41), CAST(SWITCHOFFSET({value}, ''+00:00'') AS datetime2({scale})), 121), N'' '', '
                    + N'N''T'') + N''+00:00"'''
            WHEN @type = N'uniqueidentifier' THEN N'N''"'' + LOWER(CAST({value} AS nvarchar(41))) + N''"'''
            WHEN @type IN (N'binary', N'varbinary', N'image', N'timestamp')
                THEN N'CASE WHEN {value} IS NOT NULL THEN N''"'' + ISNULL((SELECT CAST({value} AS varbinary(max)) '
                    + N'FOR XML PATH(''''), BINARY BASE64), N'''') + N''"'' END'
            ELSE CONCAT(N'N''"'' + STRING_ESCAPE(', CASE
                WHEN @type IN (N'geometry', N'geography', N'hierarchyid') THEN N'{value}.ToString()'
                WHEN @type = N'sql_variant' THEN N'CAST({value} AS nvarchar(4000))'
                ELSE N'CAST({value} AS nvarchar(max))'
            END, N' COLLATE Latin1_General_100_BIN2, ''json'') + N''"''')
        END;
        SET @value = REPLACE(REPLACE(@template COLLATE Latin1_General_100_BIN2, N'{scale}', CAST(@scale AS nvarchar(11))), N'{value}', @value);
        -- Several CONCATs: one takes up to 254 values, and a table has up to 1,024 columns.
        SET @row = CONCAT(
            @row, CASE WHEN @n % 40 = 1 THEN CONCAT(REPLICATE(N') + ', SIGN(@n - 1)), N'CONCAT(CAST(N'''' AS nvarchar(max))') END,
            N', N''', CASE @n WHEN 1 THEN N'{' ELSE N',' END, N'"',
            REPLACE(@name COLLATE Latin1_General_100_BIN2, N'''', N''''''), N'":'', ISNULL(', @value, N', N''null'')'
        );
        SET @n = @n + 1;
    END;
    RETURN @row + N', N''}'')';
END;

-- require_status: refuse status values that the column cannot hold or distinguish.
-- Arguments: @object_id (the table), @column (quoted), @ready, @active, @done, @error, @delete (1: delete done rows)
CREATE OR ALTER PROCEDURE mq_internal.require_status
    @object_id int, @column nvarchar(300), @ready nvarchar(max), @active nvarchar(max), @done nvarchar(max),
    @error nvarchar(max), @delete bit
AS
BEGIN
    DECLARE @name nvarchar(128), @number int, @type nvarchar(128), @nullable bit, @of_text bit, @changes bit, @value nvarchar(400);
    DECLARE @wide nvarchar(400), @fits int, @same int, @can_hold nvarchar(max), @is_same nvarchar(max);
    DECLARE @check nvarchar(max), @constraint int;
    DECLARE @i int = 0, @j int, @argument nvarchar(20), @other nvarchar(20), @given nvarchar(max), @before nvarchar(max);
    DECLARE @detail nvarchar(2000);
    DECLARE @pieces mq.pieces;
    DECLARE @values TABLE (n int NOT NULL PRIMARY KEY, argument nvarchar(20) NOT NULL, value nvarchar(max));
    SELECT @name = name, @number = column_id, @type = type, @nullable = nullable, @of_text = of_text, @changes = changes,
        @value = read_back
    FROM mq_internal.column_texts(@object_id, @column);
    IF @value IS NULL OR @changes = 1 OR @type IN (N'float', N'real', N'binary', N'varbinary')
        SET @detail = CONCAT(N'status_column: ', @name, N' must be a number, a text or a time that the server does not compute');
    ELSE IF @error IS NULL
        SET @detail = N'error_value: must not be NULL with a status_column';
    ELSE IF @done IS NULL AND @delete = 0
        SET @detail = N'done_value: must not be NULL with a status_column and keep';
    ELSE IF @ready IS NULL AND @nullable = 0
        SET @detail = CONCAT(N'ready_value: must not be NULL, because ', @name, N' is NOT NULL');
    IF @detail IS NOT NULL
        EXEC mq_internal.raise_error 'invalid_argument', @detail;
    -- A conversion cuts a text that is too long without an error: so compare it with the text converted without a length.
    SET @wide = @value;
    IF @of_text = 1
        SET @wide = REPLACE(REPLACE(
            LEFT(@value, LEN(@value) - CHARINDEX(N'(', REVERSE(@value))) + N'(max))', N' AS char(', N' AS varchar('
        ), N' AS nchar(', N' AS nvarchar(');
    INSERT INTO @values (n, argument, value)
    VALUES (1, N'ready_value', @ready), (2, N'active_value', @active), (3, N'done_value', @done), (4, N'error_value', @error);
    INSERT INTO @pieces (name, piece)
    VALUES ('value', REPLACE(@value, N'?', N'@given')), ('wide', REPLACE(@wide, N'?', N'@given')),
        ('before', REPLACE(@value, N'?', N'@before')), ('column', @column), ('check', NULL);
    SET @can_hold = mq_internal.fill(N'SELECT @fits = CASE
    WHEN {value} IS NULL THEN 0
    WHEN @of_text = 0 THEN 1
    WHEN DATALENGTH({wide}) > DATALENGTH({value}) THEN 0
    WHEN CAST({wide} AS nvarchar(max)) COLLATE Latin1_General_100_BIN2 <> @given COLLATE Latin1_General_100_BIN2 THEN 0
    ELSE 1
END;', @pieces);
    SET @is_same = mq_internal.fill(N'SELECT @same = CASE WHEN {value} = {before} THEN 1 ELSE 0 END;', @pieces);
    WHILE @i < 4
    BEGIN
        SET @i = @i + 1;
        SELECT @argument = argument, @given = value FROM @values WHERE n = @i;
        IF @given IS NULL
            CONTINUE;
        EXEC sp_executesql @can_hold, N'@given nvarchar(max), @of_text bit, @fits int OUTPUT', @given = @given, @of_text = @of_text,
            @fits = @fits OUTPUT;
        SET @constraint = 0;
        WHILE @fits = 1
        BEGIN
            SET @check = NULL;
            SELECT TOP (1) @check = [definition], @constraint = object_id FROM sys.check_constraints
            WHERE parent_object_id = @object_id AND parent_column_id = @number AND is_disabled = 0 AND object_id > @constraint
            ORDER BY object_id;
            IF @check IS NULL
                BREAK;
            UPDATE @pieces SET piece = @check WHERE name = 'check';
            SET @check = mq_internal.fill(N'SELECT @fits = CASE WHEN NOT ({check}) THEN 0 ELSE 1 END
FROM (SELECT {value} AS {column}) AS t;', @pieces);
            EXEC sp_executesql @check, N'@given nvarchar(max), @fits int OUTPUT', @given = @given, @fits = @fits OUTPUT;
        END;
        IF @fits = 0
        BEGIN
            SET @detail = CONCAT(@argument, N': ', @name, N' cannot hold "', LEFT(@given, 50), N'"');
            EXEC mq_internal.raise_error 'invalid_argument', @detail;
        END;
        SET @j = 0;
        WHILE @j < @i - 1
        BEGIN
            SET @j = @j + 1;
            SELECT @other = argument, @before = value FROM @values WHERE n = @j;
            IF @before IS NULL
                CONTINUE;
            EXEC sp_executesql @is_same, N'@given nvarchar(max), @before nvarchar(max), @same int OUTPUT', @given = @given,
                @before = @before, @same = @same OUTPUT;
            IF @same = 1
            BEGIN
                SET @detail = CONCAT(@argument, N': must differ from ', @other);
                EXEC mq_internal.raise_error 'invalid_argument', @detail;
            END;
        END;
    END;
END;

-- read_cron_field: the values that one field of a cron expression matches.
-- Arguments: @name (of the field, for error texts), @field (its text), @low and @high (its limits), @names (three
--     letters per value, from the first value on; NULL: the field has no names)
-- Returns: @places: a text of @high + 1 digits; the n-th is 1 if the value n - 1 matches, else 0
CREATE OR ALTER PROCEDURE mq_internal.read_cron_field
    @name nvarchar(20), @field nvarchar(400), @low int, @high int, @names nvarchar(40), @places varchar(60) OUTPUT
AS
BEGIN
    -- A comma ends each item.
    DECLARE @left nvarchar(401) = UPPER(@field COLLATE Latin1_General_100_BIN2) + N',';
    DECLARE @item nvarchar(400), @at int, @detail nvarchar(2000), @first_text nvarchar(400), @last_text nvarchar(400);
    DECLARE @step_text nvarchar(400), @first int, @last int, @step int;
    SET @places = REPLICATE('0', @high + 1);
    WHILE @left <> N''
    BEGIN
        SET @at = CHARINDEX(N',', @left COLLATE Latin1_General_100_BIN2);
        SELECT @item = LEFT(@left, @at - 1), @left = STUFF(@left, 1, @at, N''), @last_text = NULL, @step_text = NULL;
        -- The step follows the slash, the end of the range the hyphen.
        SET @first_text = @item;
        SET @at = CHARINDEX(N'/', @first_text COLLATE Latin1_General_100_BIN2);
        IF @at > 0
            SELECT @step_text = SUBSTRING(@first_text, @at + 1, 400), @first_text = LEFT(@first_text, @at - 1);
        SET @at = CHARINDEX(N'-', @first_text COLLATE Latin1_General_100_BIN2);
        IF @at > 0
            SELECT @last_text = SUBSTRING(@first_text, @at + 1, 400), @first_text = LEFT(@first_text, @at - 1);
        SET @first = CASE WHEN @first_text COLLATE Latin1_General_100_BIN2 = N'*' THEN @low ELSE mq_internal.cron_value(@first_text, @low, @names) END;
        SET @last = CASE
            WHEN @last_text IS NOT NULL THEN mq_internal.cron_value(@last_text, @low, @names)
            WHEN @first_text COLLATE Latin1_General_100_BIN2 = N'*' OR @step_text IS NOT NULL THEN @high
            ELSE @first
        END;
        -- Sunday is also 7, so SUN can end a range.
        IF @high = 7 AND @last = 0 AND @first > 0
            SET @last = 7;
        SET @step = CASE WHEN @step_text IS NULL THEN 1 ELSE mq_internal.cron_value(@step_text, 0, NULL) END;
        IF @first IS NULL OR @last IS NULL OR @step IS NULL OR @first < @low OR @last < @first OR @last > @high OR @step < 1
            OR (@first_text COLLATE Latin1_General_100_BIN2 = N'*' AND @last_text IS NOT NULL)
        BEGIN
            SET @detail = CONCAT(N'cron: ', @name, N': ', @item, N' must be *, a value or a range of ', @low, N' to ', @high,
                N', with or without /step');
            EXEC mq_internal.raise_error 'invalid_argument', @detail;
        END;
        WHILE @first <= @last
            SELECT @places = STUFF(@places, @first + 1, 1, '1'), @first = @first + @step;
    END;
END;

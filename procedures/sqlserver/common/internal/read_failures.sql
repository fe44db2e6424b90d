-- read_failures: the failures in finish_batch's list.
-- Arguments:   @failures (one a line: id,retry_after_seconds,error; a line that does not begin with two such fields is part of the error
--              above it)
-- Returns:     n (the line's number), id, retry (NULL: the queue's backoff), error, valid (0: the line is none, and nothing after it was
--              read), valid_error (0: the error begins with a double quote and is not a JSON string); starts and ends: where the error
--              stands in the list
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT n, id, retry, error FROM mq.read_failures(N'17,30,busy');
--
-- All is read code unit by code unit: elsewhere 0-9 also holds digits of other scripts, and a wide comma is a comma.

CREATE OR ALTER FUNCTION mq.read_failures (@failures nvarchar(max))
RETURNS @read TABLE (
    n int NOT NULL PRIMARY KEY, id bigint, retry int, error nvarchar(max), valid bit NOT NULL, valid_error bit NOT NULL,
    starts int, ends int
)
AS
BEGIN
    -- LEN does not count blanks at the end.
    DECLARE @length int = LEN((@failures + N'.') COLLATE Latin1_General_100_BIN2) - 1, @n int = 0, @at int = 1, @to int;
    DECLARE @line nvarchar(max), @first int, @second int, @id nvarchar(max), @retry nvarchar(max), @head bit, @valid bit = 1;
    DECLARE @entry int, @quoted bit;
    WHILE @at <= @length AND @valid = 1
    BEGIN
        SELECT @n = @n + 1, @to = CHARINDEX(NCHAR(10), @failures COLLATE Latin1_General_100_BIN2, @at), @head = 0;
        IF @to = 0
            SET @to = @length + 1;
        IF @to > @at
        BEGIN
            SET @line = SUBSTRING(@failures COLLATE Latin1_General_100_BIN2, @at, @to - @at);
            SET @first = CHARINDEX(N',', @line COLLATE Latin1_General_100_BIN2);
            SET @second = CASE WHEN @first > 1 THEN CHARINDEX(N',', @line COLLATE Latin1_General_100_BIN2, @first + 1) ELSE 0 END;
            IF @second > 0
            BEGIN
                SET @id = LEFT(@line COLLATE Latin1_General_100_BIN2, @first - 1);
                SET @retry = SUBSTRING(@line COLLATE Latin1_General_100_BIN2, @first + 1, @second - @first - 1);
                IF @id COLLATE Latin1_General_100_BIN2 NOT LIKE N'%[^0-9]%'
                    AND @retry COLLATE Latin1_General_100_BIN2 NOT LIKE N'%[^-0-9]%'
                    SET @head = 1;
            END;
            IF @head = 1
            BEGIN
                -- Any other hyphen makes it no number; more than nine digits are beyond the limit too.
                IF LEN(@id) > 18 OR LEN(@retry) > 9 OR TRY_CAST(@retry AS int) > 315360000 OR (
                    @retry COLLATE Latin1_General_100_BIN2 LIKE N'%-%' AND @retry COLLATE Latin1_General_100_BIN2 <> N'-1'
                )
                    SET @valid = 0;
                SET @quoted = CASE UNICODE(SUBSTRING(@line COLLATE Latin1_General_100_BIN2, @second + 1, 1)) WHEN 34 THEN 1 ELSE 0 END;
                SET @entry = @n;
                INSERT INTO @read (n, id, retry, valid, valid_error, starts, ends)
                VALUES (@n, TRY_CAST(@id AS bigint), TRY_CAST(NULLIF(@retry, N'') AS int), @valid, 1, @at + @second, @to - 1);
                IF @quoted = 1
                    UPDATE r
                    SET error = s.item, valid_error = s.valid
                    FROM @read AS r
                    CROSS JOIN mq.split_list(SUBSTRING(@line COLLATE Latin1_General_100_BIN2, @second + 1, @to)) AS s
                    WHERE r.n = @n;
            END
            ELSE IF @quoted = 0
                UPDATE @read SET ends = @to - 1 WHERE n = @entry;
            ELSE
            BEGIN
                -- The first line, or one below a JSON string, which has its line feeds in itself.
                SET @valid = 0;
                INSERT INTO @read (n, valid, valid_error) VALUES (@n, 0, 1);
            END;
        END;
        SET @at = @to + 1;
    END;
    UPDATE @read
    SET error = SUBSTRING(@failures COLLATE Latin1_General_100_BIN2, starts, ends - starts + 1)
    WHERE error IS NULL AND valid_error = 1 AND starts IS NOT NULL;
    RETURN;
END;
GO

-- read_failures: read the list of failures that finish_batch and finish_rows take.
-- Arguments: @failures (one per line: id,retry_after_seconds,error; a line that does not begin with two such fields
--     continues the error above it)
-- Returns: n (the line's number), id, retry (NULL: the queue's backoff), error (of several lines: may be cut at 4,000
--     characters), valid (0: the line is malformed), quoted (1: the error was a JSON string), valid_error (0: it begins
--     like a JSON string but is not one)
--
-- All lines are read at once; only lines that continue an error are appended one by one.
CREATE OR ALTER FUNCTION mq_internal.read_failures (@failures nvarchar(max))
RETURNS @read TABLE (
    n int NOT NULL PRIMARY KEY, id bigint, retry int, error nvarchar(max), valid bit NOT NULL, quoted bit NOT NULL, valid_error bit NOT NULL
)
AS
BEGIN
    DECLARE @lines TABLE (
        n int NOT NULL PRIMARY KEY, line nvarchar(max) COLLATE Latin1_General_100_BIN2, first int, second int, head bit NOT NULL
    );
    DECLARE @n int = 0, @line nvarchar(max), @above int, @entry int, @refused bit;
    -- A head is a line that begins with two fields: digits, then digits and hyphens or nothing.
    INSERT INTO @lines (n, line, first, second, head)
    SELECT l.n, l.line, a.comma, b.comma,
        CASE
            WHEN b.comma IS NULL OR a.comma = 1 OR LEFT(l.line, a.comma - 1) LIKE N'%[^0-9]%' THEN 0
            WHEN SUBSTRING(l.line, a.comma + 1, b.comma - a.comma - 1) LIKE N'%[^-0-9]%' THEN 0
            ELSE 1
        END
    FROM mq_internal.split_lines(@failures) AS l
    CROSS APPLY (SELECT NULLIF(CHARINDEX(N',', l.line), 0) AS comma) AS a
    CROSS APPLY (SELECT NULLIF(CHARINDEX(N',', l.line, a.comma + 1), 0) AS comma) AS b
    WHERE DATALENGTH(l.line) > 0;

    INSERT INTO @read (n, id, retry, error, valid, quoted, valid_error)
    SELECT h.n, TRY_CAST(h.id AS bigint), TRY_CAST(NULLIF(h.retry, N'') AS int), CASE WHEN e.quoted = 1 THEN e.item ELSE h.error END,
        CASE
            WHEN LEN(h.id) > 18 THEN 0
            WHEN h.retry NOT IN (N'', N'-1') AND (h.retry LIKE N'%-%' OR LEN(h.retry) > 9) THEN 0
            WHEN TRY_CAST(NULLIF(h.retry, N'') AS int) > 315360000 THEN 0
            ELSE 1
        END, COALESCE(e.quoted, 0), COALESCE(e.valid, 1)
    FROM (
        SELECT n, LEFT(line, first - 1) AS id, SUBSTRING(line, first + 1, second - first - 1) AS retry,
            SUBSTRING(line, second + 1, LEN(line + N'.')) AS error
        FROM @lines
        WHERE head = 1
    ) AS h
    OUTER APPLY (
        SELECT s.item, s.quoted, s.valid
        FROM mq_internal.split_list(h.error) AS s
        WHERE h.error LIKE N'"%'
    ) AS e;

    WHILE @n IS NOT NULL
    BEGIN
        SET @n = (SELECT MIN(n) FROM @lines WHERE head = 0 AND n > @n);
        SELECT @line = line FROM @lines WHERE n = @n;
        SELECT @above = MAX(n) FROM @lines WHERE n < @n;
        SELECT @entry = MAX(n) FROM @read WHERE n < @n;
        SET @refused = 1;
        SELECT @refused = quoted FROM @read WHERE n = @entry;
        IF @n IS NOT NULL AND @refused = 1
        BEGIN
            -- The first line, or a line below a JSON string, which contains its own line feeds.
            INSERT INTO @read (n, valid, quoted, valid_error) VALUES (@n, 0, 0, 1);
            BREAK;
        END;
        -- Includes the empty lines between. In code units: up to two per character.
        UPDATE @read
        SET error = CONCAT(error, REPLICATE(NCHAR(10), CASE WHEN @n - @above < 4000 THEN @n - @above ELSE 4000 END), @line)
        WHERE n = @entry AND DATALENGTH(error) < 16000;
    END;
    RETURN;
END;

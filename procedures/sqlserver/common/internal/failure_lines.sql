-- failure_lines: the lines of finish_batch's list of failures, one by one.
-- Arguments:   @failures
-- Returns:     n, line, length, last (the place of its last character in the list); head (1: it begins with two numbers and commas),
--              id, retry, comma (where the error begins, less one) and quoted (1: with a double quote), which count if head is 1
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT n, id FROM mq.failure_lines(N'17,30,busy');

CREATE OR ALTER FUNCTION mq.failure_lines (@failures nvarchar(max))
RETURNS TABLE
AS
RETURN
    SELECT h.n, h.line, h.length, h.last, h.head, h.id, h.retry, h.comma,
        CASE WHEN h.head = 1 AND SUBSTRING(h.line, h.comma + 1, 1) = N'"' THEN 1 ELSE 0 END AS quoted
    FROM (
        SELECT l.n, l.line, l.length, l.last, b.comma, c.id, c.retry,
            CASE WHEN b.comma IS NULL OR c.id = N'' OR c.id LIKE N'%[^0-9]%' OR c.retry LIKE N'%[^-0-9]%' THEN 0 ELSE 1 END AS head
        FROM (
            SELECT t.n, t.line, t.length, SUM(t.length + 1) OVER (ORDER BY t.n ROWS UNBOUNDED PRECEDING) - 1 AS last
            FROM (
                -- In code units, and LEN does not count blanks at the end.
                SELECT n, line, LEN(line + N'.') - 1 AS length FROM mq.split_lines(@failures)
            ) AS t
        ) AS l
        CROSS APPLY (SELECT NULLIF(CHARINDEX(N',', l.line), 0) AS comma) AS a
        CROSS APPLY (SELECT NULLIF(CHARINDEX(N',', l.line, a.comma + 1), 0) AS comma) AS b
        CROSS APPLY (
            SELECT LEFT(l.line, a.comma - 1) AS id, SUBSTRING(l.line, a.comma + 1, b.comma - a.comma - 1) AS retry
        ) AS c
        WHERE l.length > 0
    ) AS h;
GO

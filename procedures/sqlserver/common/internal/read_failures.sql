-- read_failures: the failures in finish_batch's list.
-- Arguments:   @failures (one a line: id,retry_after_seconds,error)
-- Returns:     n (the line's number), id, retry (NULL: the queue's backoff), error, valid (0: the line is none), valid_error (0:
--              the error begins with a double quote and is not a JSON string)
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT * FROM mq.read_failures(N'17,30,busy');
--
-- A line that does not begin with two numbers and commas is part of the error above it, which is cut out of the list as it stands there.
-- A JSON string has its line feeds in itself: no line goes on with it.

CREATE OR ALTER FUNCTION mq.read_failures (@failures nvarchar(max))
RETURNS TABLE
AS
RETURN
    SELECT f.n, TRY_CAST(f.id AS bigint) AS id, TRY_CAST(NULLIF(f.retry, N'') AS int) AS retry,
        CASE WHEN e.quoted = 1 THEN e.item ELSE f.error END AS error,
        CASE
            WHEN f.id IS NULL OR LEN(f.id) > 18 THEN 0
            WHEN f.retry NOT IN (N'', N'-1') AND (f.retry LIKE N'%[^0-9]%' OR LEN(f.retry) > 9) THEN 0
            WHEN TRY_CAST(NULLIF(f.retry, N'') AS int) > 315360000 THEN 0
            ELSE 1
        END AS valid,
        COALESCE(e.valid, 1) AS valid_error
    FROM (
        SELECT p.n, CASE p.head WHEN 1 THEN p.id END AS id, CASE p.head WHEN 1 THEN p.retry END AS retry,
            CASE
                WHEN p.head = 0 THEN NULL
                WHEN p.quoted = 1 OR p.lines = 1 THEN SUBSTRING(p.line, p.comma + 1, p.length)
                ELSE SUBSTRING(
                    @failures COLLATE Latin1_General_100_BIN2, p.last - p.length + p.comma + 1, p.error_last - p.last + p.length - p.comma
                )
            END AS error
        FROM (
            SELECT k.n, k.line, k.length, k.last, k.head, k.id, k.retry, k.comma, k.part, COUNT(*) OVER (PARTITION BY k.part) AS lines,
                MAX(k.last) OVER (PARTITION BY k.part) AS error_last, MAX(k.quoted) OVER (PARTITION BY k.part) AS quoted
            FROM (
                SELECT n, line, length, last, head, id, retry, comma, quoted,
                    SUM(head) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS part
                FROM mq.failure_lines(@failures)
            ) AS k
        ) AS p
        WHERE p.head = 1 OR p.part = 0 OR p.quoted = 1
    ) AS f
    OUTER APPLY (
        SELECT MAX(s.item) AS item, MAX(s.quoted) AS quoted, MIN(s.valid) AS valid
        FROM mq.split_list(f.error) AS s
        WHERE f.error LIKE N'"%'
    ) AS e;
GO

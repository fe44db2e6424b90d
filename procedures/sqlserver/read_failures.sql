-- read_failures: the items of finish_batch's list of failures that the batch holds.
-- Arguments:   @failures (one a line: id,retry_after_seconds,error), @key
-- Returns:     n, id, attempts, retry (NULL: the queue's backoff), error, valid (0: the line is none)
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT * FROM mq.read_failures(N'17,30,busy', @key);

CREATE OR ALTER FUNCTION mq.read_failures (@failures nvarchar(max))
RETURNS TABLE
AS
RETURN
    SELECT f.n, TRY_CAST(f.id AS bigint) AS id, TRY_CAST(NULLIF(f.retry, N'') AS int) AS retry,
        CASE WHEN e.quoted = 1 THEN e.item ELSE f.error END AS error,
        CASE
            WHEN f.id IS NULL OR f.id LIKE N'%[^0-9]%' OR LEN(f.id) NOT BETWEEN 1 AND 18 THEN 0
            WHEN f.retry IS NULL OR (f.retry NOT IN (N'', N'-1') AND (f.retry LIKE N'%[^0-9]%' OR LEN(f.retry) > 9)) THEN 0
            WHEN TRY_CAST(NULLIF(f.retry, N'') AS int) > 315360000 THEN 0
            ELSE 1
        END AS valid,
        COALESCE(e.valid, 1) AS valid_error
    FROM (
        SELECT l.n, LEFT(l.item, a.comma - 1) AS id, SUBSTRING(l.item, a.comma + 1, b.comma - a.comma - 1) AS retry,
            SUBSTRING(l.item, b.comma + 1, LEN(l.item + N'.')) AS error
        FROM mq.split_list(@failures) AS l
        CROSS APPLY (SELECT NULLIF(CHARINDEX(N',', LEFT(l.item, 40)), 0) AS comma) AS a
        CROSS APPLY (SELECT NULLIF(CHARINDEX(N',', LEFT(l.item, 40), a.comma + 1), 0) AS comma) AS b
    ) AS f
    OUTER APPLY (SELECT MAX(s.item) AS item, MAX(s.quoted) AS quoted, MIN(s.valid) AS valid FROM mq.split_list(f.error) AS s WHERE f.error LIKE N'"%') AS e;
GO

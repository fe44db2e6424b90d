-- read_failures: the lines of finish_batch's list of failures.
-- Arguments:   @failures (one a line: id,retry_after_seconds,error)
-- Returns:     n (the line's number), id, retry (NULL: the queue's backoff), error, valid (0: the line is none), valid_error (0:
--              the error begins with a double quote and is not a JSON string)
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT * FROM mq.read_failures(N'17,30,busy');

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
        -- Code unit by code unit: elsewhere 0-9 also holds digits of other scripts.
        SELECT l.n, LEFT(l.item, a.comma - 1) COLLATE Latin1_General_100_BIN2 AS id,
            SUBSTRING(l.item, a.comma + 1, b.comma - a.comma - 1) COLLATE Latin1_General_100_BIN2 AS retry,
            SUBSTRING(l.item, b.comma + 1, LEN(l.item + N'.')) AS error
        FROM mq.split_list(@failures) AS l
        CROSS APPLY (SELECT NULLIF(CHARINDEX(N',', LEFT(l.item, 40)), 0) AS comma) AS a
        CROSS APPLY (SELECT NULLIF(CHARINDEX(N',', LEFT(l.item, 40), a.comma + 1), 0) AS comma) AS b
    ) AS f
    OUTER APPLY (
        SELECT MAX(s.item) AS item, MAX(s.quoted) AS quoted, MIN(s.valid) AS valid
        FROM mq.split_list(f.error) AS s
        WHERE f.error LIKE N'"%'
    ) AS e;
GO

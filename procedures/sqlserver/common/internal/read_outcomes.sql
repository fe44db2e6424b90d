-- read_outcomes: read the list of outcomes that finish_batch, finish_messages and finish_rows take.
-- Arguments:   @outcomes (a flat JSON object per line: id, error, retry_after_seconds, dead, released)
-- Returns:     n (the line's number), id, retry (NULL: the default backoff; -1: dead; -2: released), error (NULL: did not
--              fail), problem (the error's text when the list is refused; its first is that of the lowest n)
CREATE OR ALTER FUNCTION mq_internal.read_outcomes (@outcomes nvarchar(max))
RETURNS TABLE
AS
RETURN
    SELECT r.n, r.id, r.retry, r.error,
        CASE
            WHEN r.problem IS NOT NULL THEN CONCAT(N'outcomes: line ', r.n, N': ', r.problem)
            WHEN COUNT(*) OVER (PARTITION BY r.id) > 1 THEN N'outcomes: an id is given twice'
        END AS problem
    FROM (
        SELECT l.n, p.problem, o.error, CASE WHEN p.problem IS NULL THEN TRY_CAST(o.id AS bigint) ELSE -l.n END AS id,
            CASE WHEN o.released IN (N'true', N'1') THEN -2 WHEN o.dead IN (N'true', N'1') THEN -1 ELSE TRY_CAST(o.retry AS int) END
                AS retry
        FROM mq_internal.split_lines(@outcomes) AS l
        CROSS APPLY (
            -- '' instead of NULL: an aggregate over NULL gives a warning. An error has a mark in front.
            SELECT MIN(m.fits) AS fits, NULLIF(MAX(CASE m.name WHEN N'id.' THEN m.text ELSE N'' END), N'') AS id,
                NULLIF(MAX(CASE m.name WHEN N'error.' THEN m.kind ELSE N'' END), N'') AS kind,
                NULLIF(MAX(CASE m.name WHEN N'error.' THEN m.marked ELSE N'' END), N'') AS marked,
                NULLIF(MAX(CASE m.name WHEN N'retry_after_seconds.' THEN m.text ELSE N'' END), N'') AS retry,
                NULLIF(MAX(CASE m.name WHEN N'dead.' THEN m.text ELSE N'' END), N'') AS dead,
                NULLIF(MAX(CASE m.name WHEN N'released.' THEN m.text ELSE N'' END), N'') AS released,
                NULLIF(MAX(CASE
                    WHEN m.name IN (N'id.', N'error.', N'retry_after_seconds.', N'dead.', N'released.') THEN N'' ELSE m.name
                END), N'') AS unknown
            FROM (
                -- Append a character: a comparison ignores trailing blanks. Of a text only its opening quote is left.
                SELECT ISNULL((v.name + N'.') COLLATE Latin1_General_100_BIN2, N'id.') AS name, v.fits,
                    ISNULL(N'=' + v.value, N'') AS marked, ISNULL(v.kind, N'') AS kind,
                    CASE v.kind WHEN N'string' THEN N'"' ELSE ISNULL(v.value, N'') END COLLATE Latin1_General_100_BIN2 AS text
                FROM mq_internal.read_object(l.line) AS v
            ) AS m
        ) AS a
        CROSS APPLY (
            SELECT a.fits, a.id, a.kind, a.retry, a.dead, a.released, a.unknown,
                SUBSTRING(a.marked, 2, LEN(a.marked + N'.')) AS error
        ) AS o
        CROSS APPLY (
            SELECT CASE
                WHEN o.fits = 0 THEN N'must be a JSON object with unique names, no nested values and no NUL character'
                WHEN o.unknown IS NOT NULL
                    THEN CONCAT(N'the names are id, error, retry_after_seconds, dead and released, not ',
                        LEFT(o.unknown, LEN(o.unknown) - 1))
                WHEN o.id IS NULL OR o.id LIKE N'%[^0-9]%' OR LEN(o.id) > 18 THEN N'id must be a number of 1 to 18 digits'
                WHEN o.kind NOT IN (N'string', N'null') THEN N'error must be a text'
                WHEN o.retry LIKE N'%[^0-9]%' OR LEN(o.retry) > 9 OR TRY_CAST(o.retry AS int) > 315360000
                    THEN N'retry_after_seconds must be 0 to 315,360,000'
                WHEN o.dead NOT IN (N'true', N'1', N'false', N'0') THEN N'dead must be 0 or 1'
                WHEN o.released NOT IN (N'true', N'1', N'false', N'0') THEN N'released must be 0 or 1'
                WHEN o.error IS NULL AND (o.retry IS NOT NULL OR o.dead IN (N'true', N'1'))
                    THEN N'retry_after_seconds and dead need an error'
                WHEN o.retry IS NOT NULL AND o.dead IN (N'true', N'1') THEN N'dead excludes retry_after_seconds'
                WHEN o.error IS NOT NULL AND o.released IN (N'true', N'1') THEN N'released excludes error'
            END AS problem
        ) AS p
        WHERE DATALENGTH(l.line) > 0
    ) AS r;

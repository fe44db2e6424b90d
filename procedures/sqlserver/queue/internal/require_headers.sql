-- require_headers: refuse headers that are not a JSON object with unique names, from its { to its }.
-- Arguments: @headers (NULL: none)
CREATE OR ALTER PROCEDURE mq_internal.require_headers
    @headers nvarchar(max)
AS
BEGIN
    IF @headers IS NULL
        RETURN;
    DECLARE @fits bit = CASE WHEN LEFT(@headers, 1) = N'{' AND RIGHT(@headers, 1) = N'}' THEN ISJSON(@headers) ELSE 0 END;
    -- Append a character: a comparison ignores trailing blanks.
    IF @fits = 1 AND EXISTS (
        SELECT k.name
        FROM (SELECT ([key] + N'.') COLLATE Latin1_General_100_BIN2 AS name FROM OPENJSON(@headers)) AS k
        GROUP BY k.name
        HAVING COUNT(*) > 1
    )
        SET @fits = 0;
    IF @fits = 0
        EXEC mq_internal.raise_error 'invalid_argument', N'headers: must be a JSON object with unique names';
END;

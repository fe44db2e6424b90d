-- next_scan: when the next claim of a type may be a full scan: before it, claims rescue no expired claim and send no due
--     schedule. See make_ready.
-- Returns: a time; 1900-01-01: the next claim is one
CREATE OR ALTER FUNCTION mq_internal.next_scan (@type nvarchar(400), @now datetime2(7))
RETURNS datetime2(7)
AS
BEGIN
    DECLARE @scan_at datetime2(7) = '1900-01-01';
    SELECT @scan_at = t.scan_at
    FROM (
        SELECT TOP (1) DATEADD(SECOND, 1, scanned_at) AS scan_at
        FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type
        ORDER BY n DESC, priority, run_at, id
    ) AS t
    WHERE t.scan_at BETWEEN @now AND DATEADD(SECOND, 6, @now);
    RETURN @scan_at;
END;

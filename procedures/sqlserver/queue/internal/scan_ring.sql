-- scan_ring: find the lowest ready message of a ring, and measure how long that took.
-- Arguments:   @type, @from_id and @after_id (ids above @from_id, up to @after_id), @ahead (1: nothing was found after
--              @after_id either: measure that scan too), @long_scan (microseconds; a longer scan is repeated)
-- Returns:     @lowest_id (NULL when there is none), @scanned (the duration of the scan, in microseconds)
-- Transaction: reads only; skips locked rows

CREATE OR ALTER PROCEDURE mq_internal.scan_ring
    @type nvarchar(400),
    @from_id bigint,
    @after_id bigint,
    @ahead bit,
    @long_scan int,
    @lowest_id bigint OUTPUT,
    @scanned bigint OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @begun datetime2(7), @tries int = 0, @next_id bigint, @high bigint = @after_id;
    IF @from_id > @high
        SET @high = @from_id;
    -- Measure twice, as in fill_ring: planning and cold pages are slow only the first time.
    WHILE @tries < 2
    BEGIN
        SELECT @tries = @tries + 1, @begun = SYSUTCDATETIME(), @lowest_id = NULL;
        IF @ahead = 1
            SELECT TOP (1) @next_id = id
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority = -32768 AND run_at = '0001-01-01' AND id > @high
            ORDER BY priority, run_at, id;
        SELECT TOP (1) @lowest_id = id
        FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND priority = -32768 AND run_at = '0001-01-01' AND id > @from_id AND id <= @after_id
        ORDER BY priority, run_at, id;
        SET @scanned = DATEDIFF_BIG(MICROSECOND, @begun, SYSUTCDATETIME());
        IF @scanned < @long_scan
            BREAK;
    END;
END;
GO

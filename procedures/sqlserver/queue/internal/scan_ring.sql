-- scan_ring: what a claim round a ring has to do before it takes messages, and how long it took to find out.
-- Arguments:   @type, @full_scan (1: everything; 0: only what has become due since @promoted_to), @promoted_to, @now
-- Returns:     @expired (1: claims have expired), @due (1: delayed messages are due), @outside (1: messages stand outside the ring),
--              @scanned (microseconds)
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; passes over locked rows
-- Example:     EXEC mq.scan_ring N'crawl', 1, '0001-01-01', @now, @expired OUTPUT, @due OUTPUT, @outside OUTPUT, @scanned OUTPUT;

CREATE OR ALTER PROCEDURE mq.scan_ring
    @type nvarchar(400),
    @full_scan bit,
    @promoted_to datetime2(7),
    @now datetime2(7),
    @expired bit OUTPUT,
    @due bit OUTPUT,
    @outside bit OUTPUT,
    @scanned int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Microseconds.
    DECLARE @long_scan int = 500;
    DECLARE @begun datetime2(7), @tries int = 0;
    -- What takes long at first, a plan or pages that nobody has read for a while, does not take long again.
    WHILE @tries < 2
    BEGIN
        SELECT @tries = @tries + 1, @begun = SYSUTCDATETIME(), @expired = 0, @due = 0, @outside = 0;
        IF @full_scan = 1
        BEGIN
            IF EXISTS (SELECT * FROM mq.batch WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @now)
                SET @expired = 1;
            SET @outside = mq.outside_ring(@type);
        END;
        IF EXISTS (
            SELECT * FROM mq.delayed WITH (READPAST, READCOMMITTEDLOCK)
            WHERE type = @type AND run_at > @promoted_to AND run_at <= @now
        )
            SET @due = 1;
        SET @scanned = DATEDIFF(MICROSECOND, @begun, SYSUTCDATETIME());
        IF @scanned < @long_scan
            BREAK;
    END;
END;
GO

-- fill_ring: rescue the expired claims of a ring, send what its schedules have due, promote what is due, move into the ring what stands
--            outside, and measure how long it took to find that out.
-- Arguments:   @type, @size (of the claim), @full_scan (1: expired claims, schedules and messages outside are searched for too), @promoted_to
--              (nothing due before is left to promote), @now, @move (1: the claim commits at once), @long_scan (microseconds; a scan that
--              took longer is repeated)
-- Returns:     @promoted_to (from now on), @outside (1: messages stand outside the ring), @scanned (microseconds)
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; passes over locked rows
-- Example:     EXEC mq.fill_ring N'crawl', 10, 1, @promoted_to OUTPUT, @now, 1, 500, @outside OUTPUT, @scanned OUTPUT;

CREATE OR ALTER PROCEDURE mq.fill_ring
    @type nvarchar(400),
    @size int,
    @full_scan bit,
    @promoted_to datetime2(7) OUTPUT,
    @now datetime2(7),
    @move bit,
    @long_scan int,
    @outside bit OUTPUT,
    @scanned int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- At most so many messages are promoted by one claim, and so many expired claims rescued.
    DECLARE @promote int = CASE WHEN 2 * @size > 100 THEN 2 * @size ELSE 100 END, @rescue int = 20;
    DECLARE @begun datetime2(7), @tries int = 0, @expired bit, @due bit, @sent bit = 0, @rescued bigint, @moved int = 0, @first_run_at datetime2(7);
    -- What takes long once, because of a plan or of pages that nobody has read for a while, does not take long again.
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
    IF @expired = 1
        EXEC mq.rescue @type, @rescue, @rescued OUTPUT;
    IF @full_scan = 1 AND EXISTS (SELECT * FROM mq.schedule WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @type)
    BEGIN
        EXEC mq.send_due @type, @promote;
        SET @sent = 1;
    END;
    IF @due = 1
        EXEC mq.promote @type, @promoted_to, @now, @promote, 0, @moved OUTPUT, @first_run_at OUTPUT;
    -- Not up to now: somebody may be about to commit a failure that is due already.
    IF @moved < @promote
        SET @promoted_to = DATEADD(SECOND, -1, @now);
    -- In a type that is no ring yet what has come back or was sent stands at its ordinary place.
    IF @full_scan = 1 AND @outside = 0 AND (@expired = 1 OR @sent = 1 OR @moved > 0) AND mq.is_ring(@type) = 0
        SET @outside = 1;
    IF @outside = 1 AND @move = 1
    BEGIN
        EXEC mq.move_to_ring @type;
        SET @outside = mq.outside_ring(@type);
    END;
END;
GO

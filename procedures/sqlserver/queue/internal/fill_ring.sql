-- fill_ring: rescue expired claims, send due schedules, promote due messages and move messages into a ring, and measure how
--            long the scan for them took.
-- Arguments:   @type, @size (of the claim), @full_scan (1: also check expired claims, schedules and messages outside the
--              ring), @promoted_to (no message due before this time is delayed), @now, @move (1: the claim commits at
--              once), @long_scan (microseconds; a longer scan is repeated)
-- Returns:     @promoted_to (new value), @outside (1: some messages are outside the ring), @scanned (the duration of the
--              scan, in microseconds)
-- Transaction: joins the caller's, which is READ COMMITTED; skips locked rows

CREATE OR ALTER PROCEDURE mq_internal.fill_ring
    @type nvarchar(400),
    @size int,
    @full_scan bit,
    @promoted_to datetime2(7) OUTPUT,
    @now datetime2(7),
    @move bit,
    @long_scan int,
    @outside bit OUTPUT,
    @scanned bigint OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- The maximum numbers of messages that a claim promotes and of expired claims that it rescues.
    DECLARE @promote int = CASE WHEN 2 * @size > 100 THEN 2 * @size ELSE 100 END, @rescue int = 20;
    DECLARE @begun datetime2(7), @tries int = 0, @expired bit, @due bit, @sent bit = 0, @rescued bigint, @moved int = 0, @first_run_at datetime2(7);
    -- Measure twice: planning and cold pages are slow only the first time.
    WHILE @tries < 2
    BEGIN
        SELECT @tries = @tries + 1, @begun = SYSUTCDATETIME(), @expired = 0, @due = 0, @outside = 0;
        IF @full_scan = 1
        BEGIN
            IF EXISTS (SELECT * FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @now)
                SET @expired = 1;
            SET @outside = mq_internal.outside_ring(@type);
        END;
        IF EXISTS (
            SELECT * FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND run_at > @promoted_to AND run_at <= @now
        )
            SET @due = 1;
        SET @scanned = DATEDIFF_BIG(MICROSECOND, @begun, SYSUTCDATETIME());
        IF @scanned < @long_scan
            BREAK;
    END;
    IF @expired = 1
        EXEC mq_internal.rescue @type, @rescue, @rescued OUTPUT;
    IF @full_scan = 1 AND EXISTS (SELECT * FROM mq.schedule WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type)
    BEGIN
        EXEC mq_internal.send_due @type, @promote;
        SET @sent = 1;
    END;
    IF @due = 1
        EXEC mq_internal.promote @type, @promoted_to, @now, @promote, 0, @moved OUTPUT, @first_run_at OUTPUT;
    -- Stop before now: another transaction may be about to commit a failed message that is already due.
    IF @moved < @promote
        SET @promoted_to = DATEADD(SECOND, -1, @now);
    -- In a type that is not a ring yet, rescued, promoted and scheduled messages are outside the ring.
    IF @full_scan = 1 AND @outside = 0 AND (@expired = 1 OR @sent = 1 OR @moved > 0) AND mq_internal.is_ring(@type) = 0
        SET @outside = 1;
    IF @outside = 1 AND @move = 1
    BEGIN
        EXEC mq_internal.move_to_ring @type;
        SET @outside = mq_internal.outside_ring(@type);
    END;
END;
GO

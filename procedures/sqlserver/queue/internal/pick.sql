-- pick: move up to @size ready messages of a type from the ready table under a batch key, in claim order; expired claims are
--       rescued, due messages promoted and those of schedules sent on the way.
-- Arguments:   @type, @size, @take (1: the caller's transaction may be long: see pick_grouped), @batch_key
-- Returns:     @count: how many rows of mq.claimed have that key now
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.pick N'email', 10, 0, @batch_key, @count OUTPUT;
--
-- Low-water marks. A claim starts where earlier claims began to find something: mq.mark holds one such place per priority, and
-- take_ready takes from them on.
--
-- No message is passed over for long. What is put back or becomes due below a mark lowers it. Two messages can still appear below a
-- mark unseen: one whose sender commits late, and one whose take rolls back. For the first, no segment starts later than a second
-- ago. For both, the first claim of each second is a full scan: it ignores the marks and reads the type from its very start. After a
-- full scan that took long, because it read many deleted rows, the next one waits ten times as long, at most 5 seconds.
-- docs/how-a-claim-works.md explains this with a drawing.
--
-- READPAST passes over rows that others have locked: what reads marks, batches or delayed messages here must not wait for them
-- either. READCOMMITTEDLOCK, because under READ_COMMITTED_SNAPSHOT READPAST would do nothing.

CREATE OR ALTER PROCEDURE mq.pick
    @type nvarchar(400),
    @size int,
    @take bit,
    @batch_key uniqueidentifier,
    @count int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Milliseconds. A full scan that took so long and found nothing has read deleted rows: idle consumers need not do it all the time.
    DECLARE @long_scan int = 5;
    -- What a take rescues or promotes stays hidden from others until its commit: no more than it may want itself.
    DECLARE @rescue int = CASE @take WHEN 1 THEN 1 ELSE 20 END;
    DECLARE @promote int = CASE WHEN @take = 1 THEN @size WHEN 2 * @size > 100 THEN 2 * @size ELSE 100 END;
    DECLARE @start datetime2(7) = '1900-01-01', @now datetime2(7) = SYSUTCDATETIME(), @pause int;
    DECLARE @latest datetime2(7) = DATEADD(SECOND, -1, @now), @lowered_to datetime2(7) = '9999-12-31';
    DECLARE @grouped bit, @tend bit, @full_scan bit = 1, @marks_changed bit = 0, @front_moved bit, @from_n bigint;
    DECLARE @n bigint, @scanned_at datetime2(7), @promoted_to datetime2(7), @rescued bigint, @moved int, @first_run_at datetime2(7);

    SET @count = 0;
    SELECT @grouped = grouped, @tend = CASE WHEN grouped = 1 AND (ordered = 0 OR group_rate > 0) THEN 1 ELSE 0 END
    FROM mq.policy(@type);
    SELECT TOP (1) @n = n, @scanned_at = scanned_at, @promoted_to = promoted_to
    FROM mq.mark WITH (READPAST, READCOMMITTEDLOCK)
    WHERE type = @type
    ORDER BY n DESC, priority, run_at, id;
    -- A full scan may be noted up to 5 seconds ahead; more, or a promotion ahead, means that the clock was set back.
    IF @now BETWEEN DATEADD(SECOND, -5, @scanned_at) AND DATEADD(SECOND, 1, @scanned_at) AND @promoted_to <= @now
        SET @full_scan = 0;
    ELSE
    BEGIN
        SET @promoted_to = @start;
        IF EXISTS (
            SELECT * FROM mq.batch WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @now
        )
            EXEC mq.rescue @type, @rescue, @rescued OUTPUT;
        IF EXISTS (SELECT * FROM mq.schedule WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @type)
            EXEC mq.send_due @type, @promote;
    END;

    IF EXISTS (
        SELECT * FROM mq.delayed WITH (READPAST, READCOMMITTEDLOCK)
        WHERE type = @type AND run_at > @promoted_to AND run_at <= @now
    )
    BEGIN
        EXEC mq.promote @type, @promoted_to, @now, @promote, @grouped, @moved OUTPUT, @first_run_at OUTPUT;
        SELECT @promoted_to = CASE WHEN @moved < @promote THEN @now ELSE @start END,
            @lowered_to = COALESCE(@first_run_at, @lowered_to);
        IF EXISTS (
            SELECT * FROM mq.mark WITH (READPAST, READCOMMITTEDLOCK)
            WHERE type = @type AND n = @n AND run_at >= @lowered_to AND (run_at > @start OR id > 0)
        )
            SET @marks_changed = 1;
    END
    ELSE
        SET @promoted_to = @now;

    IF @grouped = 1
    BEGIN
        IF @tend = 1 AND @full_scan = 1 AND @take = 0
            EXEC mq.tend_groups @type;
        EXEC mq.pick_grouped @type, @size, @take, @batch_key, @count OUTPUT;
        IF @full_scan = 1 AND @count > 0
            -- No claim of tickets starts at a mark. The marks only record the time of the last full scan.
            EXEC mq.renew_marks @type, @n, @now, @start, NULL, '0001-01-01', '9999-12-31';
        RETURN;
    END;

    IF @full_scan = 0
        SET @from_n = @n;
    IF @lowered_to < @latest
        SET @latest = @lowered_to;
    EXEC mq.take_ready @type, @size, @from_n, @latest, @batch_key, @count OUTPUT, @front_moved OUTPUT;
    SET @pause = 10 * DATEDIFF(MILLISECOND, @now, SYSUTCDATETIME());
    IF @full_scan = 1
        SET @scanned_at = DATEADD(MILLISECOND, CASE WHEN @pause < 5000 THEN @pause ELSE 5000 END, @now);
    IF @marks_changed = 1 OR (@count > 0 AND (@full_scan = 1 OR @front_moved = 1))
        EXEC mq.renew_marks @type, @n, @scanned_at, @promoted_to, @batch_key, '0001-01-01', @lowered_to;
    ELSE IF @count = 0 AND @full_scan = 1 AND @n IS NOT NULL AND SYSUTCDATETIME() > DATEADD(MILLISECOND, @long_scan, @now)
        -- Nothing is ready: all marks move up to now.
        EXEC mq.renew_marks @type, @n, @scanned_at, @promoted_to, NULL, @now, '9999-12-31';
END;
GO

-- pick: move up to @size ready messages of a type from mq.ready into a batch, in claim order; before that, rescue expired
--       claims, promote due messages and send due schedules.
-- Arguments:   @type, @size, @take (1: called by take_batch; see pick_grouped), @batch_key
-- Returns:     @count: how many rows of mq.claimed now have @batch_key
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
--
-- Low-water marks. A claim starts at the marks of mq.mark, one per priority, where earlier claims found their first
-- messages (see take_ready).
--
-- No message is skipped for longer than a second. A procedure that puts a message back below a mark calls lower_mark. When
-- a message becomes due below a mark, this procedure lowers the mark. Two kinds of messages can appear below a mark without
-- lowering it: their sender commits late, or a take rolls back. So no segment starts later than one second ago, and the
-- first claim of each second is a full scan: it ignores the marks. If a full scan takes long because of many deleted rows,
-- the next one is later: after ten times that time, at most 5 seconds. docs/how-a-claim-works.md explains this with a
-- drawing.
--
-- Reads of marks, batches and delayed messages use READPAST, which skips locked rows, so they wait for no other session.
-- READCOMMITTEDLOCK is needed because READPAST has no effect under READ_COMMITTED_SNAPSHOT.

CREATE OR ALTER PROCEDURE mq_internal.pick
    @type nvarchar(400),
    @size int,
    @take bit,
    @batch_key uniqueidentifier,
    @count int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Milliseconds. A full scan that takes longer than this and finds nothing has read deleted rows. Idle consumers should
    -- not repeat it often.
    DECLARE @long_scan int = 5;
    -- Messages that a take rescues or promotes stay hidden from others until it commits: no more than it can use.
    DECLARE @rescue int = CASE @take WHEN 1 THEN 1 ELSE 20 END;
    DECLARE @promote int = CASE WHEN @take = 1 THEN @size WHEN 2 * @size > 100 THEN 2 * @size ELSE 100 END;
    DECLARE @start datetime2(7) = '1900-01-01', @now datetime2(7) = SYSUTCDATETIME(), @pause int;
    DECLARE @latest datetime2(7) = DATEADD(SECOND, -1, @now), @lowered_to datetime2(7) = '9999-12-31';
    DECLARE @grouped bit, @tend bit, @full_scan bit = 1, @marks_changed bit = 0, @front_moved bit, @from_n bigint;
    DECLARE @n bigint, @scanned_at datetime2(7), @promoted_to datetime2(7), @rescued bigint, @moved int, @first_run_at datetime2(7);

    SET @count = 0;
    SELECT @grouped = grouped, @tend = CASE WHEN grouped = 1 AND (ordered = 0 OR group_rate > 0) THEN 1 ELSE 0 END
    FROM mq_internal.policy(@type);
    SELECT TOP (1) @n = n, @scanned_at = scanned_at, @promoted_to = promoted_to
    FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE type = @type
    ORDER BY n DESC, priority, run_at, id;
    -- scanned_at may be up to 5 seconds ahead. More than that, or a promotion in the future, means that the clock was set
    -- back.
    IF @now BETWEEN DATEADD(SECOND, -5, @scanned_at) AND DATEADD(SECOND, 1, @scanned_at) AND @promoted_to <= @now
        SET @full_scan = 0;
    ELSE
    BEGIN
        SET @promoted_to = @start;
        IF EXISTS (
            SELECT * FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @now
        )
            EXEC mq_internal.rescue @type, @rescue, @rescued OUTPUT;
        IF EXISTS (SELECT * FROM mq.schedule WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type)
            EXEC mq_internal.send_due @type, @promote;
    END;

    IF EXISTS (
        SELECT * FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND run_at > @promoted_to AND run_at <= @now
    )
    BEGIN
        EXEC mq_internal.promote @type, @promoted_to, @now, @promote, @grouped, @moved OUTPUT, @first_run_at OUTPUT;
        SELECT @promoted_to = CASE WHEN @moved < @promote THEN @now ELSE @start END,
            @lowered_to = COALESCE(@first_run_at, @lowered_to);
        IF EXISTS (
            SELECT * FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND n = @n AND run_at >= @lowered_to AND (run_at > @start OR id > 0)
        )
            SET @marks_changed = 1;
    END
    ELSE
        SET @promoted_to = @now;

    IF @grouped = 1
    BEGIN
        IF @tend = 1 AND @full_scan = 1 AND @take = 0
            EXEC mq_internal.clean_buckets @type;
        EXEC mq_internal.pick_grouped @type, @size, @take, @batch_key, @count OUTPUT;
        IF @full_scan = 1 AND @count > 0
            -- Claims of tickets start at no mark. The row only records the time of the last full scan.
            EXEC mq_internal.renew_marks @type, @n, @now, @start, NULL, '0001-01-01', '9999-12-31';
        RETURN;
    END;

    IF @full_scan = 0
        SET @from_n = @n;
    IF @lowered_to < @latest
        SET @latest = @lowered_to;
    EXEC mq_internal.take_ready @type, @size, @from_n, @latest, @batch_key, @count OUTPUT, @front_moved OUTPUT;
    SET @pause = 10 * DATEDIFF(MILLISECOND, @now, SYSUTCDATETIME());
    IF @full_scan = 1
        SET @scanned_at = DATEADD(MILLISECOND, CASE WHEN @pause < 5000 THEN @pause ELSE 5000 END, @now);
    IF @marks_changed = 1 OR (@count > 0 AND (@full_scan = 1 OR @front_moved = 1))
        EXEC mq_internal.renew_marks @type, @n, @scanned_at, @promoted_to, @batch_key, '0001-01-01', @lowered_to;
    ELSE IF @count = 0 AND @full_scan = 1 AND @n IS NOT NULL AND SYSUTCDATETIME() > DATEADD(MILLISECOND, @long_scan, @now)
        -- Nothing is ready: move all marks up to now.
        EXEC mq_internal.renew_marks @type, @n, @scanned_at, @promoted_to, NULL, @now, '9999-12-31';
END;
GO

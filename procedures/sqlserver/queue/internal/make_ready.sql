-- make_ready: make messages ready before a claim: rescue expired claims, send due schedules, promote due messages; and
--     find the marks at which the claim starts.
-- Arguments: @type, @size (of the claim), @take (1: called by take_batch), @round (1: called by claim_ring, which has
--     marks of its own, with the run_at of a ring), @now
-- Returns: @n (the number of the marks; NULL: there are none), @full_scan (1: the claim must ignore them), @scanned_at
--     and @promoted_to (to be written with new marks), @lowered_to (a message became ready at this run_at; 9999-12-31:
--     none did), @lowered (1: a mark was after it)
--
-- Reads of marks, batches and delayed messages use READPAST, which skips locked rows, so they wait for no other
-- session. READCOMMITTEDLOCK is needed because READPAST has no effect under READ_COMMITTED_SNAPSHOT.
CREATE OR ALTER PROCEDURE mq_internal.make_ready
    @type nvarchar(400), @size int, @take bit, @round bit, @now datetime2(7), @n bigint OUTPUT, @full_scan bit OUTPUT,
    @scanned_at datetime2(7) OUTPUT, @promoted_to datetime2(7) OUTPUT, @lowered_to datetime2(7) OUTPUT,
    @lowered bit OUTPUT
AS
BEGIN
    -- Messages that a take rescues or promotes stay hidden from others until it commits: no more than it can use.
    DECLARE @rescue int = CASE @take WHEN 1 THEN 1 ELSE 20 END;
    DECLARE @promote int = CASE WHEN @take = 1 THEN @size WHEN 2 * @size > 100 THEN 2 * @size ELSE 100 END;
    DECLARE @start datetime2(7) = '1900-01-01', @ring bit, @rescued bigint, @moved int, @first_run_at datetime2(7), @mark_run_at datetime2(7);
    SELECT @full_scan = 1, @lowered = 0, @lowered_to = '9999-12-31', @n = NULL;
    SELECT TOP (1) @n = n, @scanned_at = scanned_at, @promoted_to = promoted_to, @mark_run_at = run_at
    FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE type = @type
    ORDER BY n DESC, priority, run_at, id;
    -- scanned_at may be up to 5 seconds ahead. More than that, or a promotion in the future, means that the clock was set
    -- back.
    IF @now BETWEEN DATEADD(SECOND, -5, @scanned_at) AND DATEADD(SECOND, 1, @scanned_at) AND @promoted_to <= @now
        AND (@round = 0 OR @mark_run_at = '0001-01-01')
        SET @full_scan = 0;
    ELSE
    BEGIN
        SET @promoted_to = @start;
        IF EXISTS (
            SELECT * FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @now
        )
            EXEC mq_internal.rescue @type, @rescue, @rescued OUTPUT;
        EXEC mq_internal.send_due @type, @promote;
        -- A sender that did not see yet that the queue is a ring.
        SELECT @ring = ring FROM mq_internal.policy(@type);
        IF @ring = 1 AND (
            EXISTS (SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND priority > -32768)
            OR EXISTS (
                SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority = -32768 AND lane = N'-' AND run_at > '0001-01-01'
            )
            OR EXISTS (SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND priority = -32768 AND lane > N'-')
        )
            EXEC mq_internal.move_ready @type, 1, 0, 0;
    END;

    IF EXISTS (
        SELECT * FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND run_at > @promoted_to AND run_at <= @now
    )
    BEGIN
        EXEC mq_internal.promote @type, @promoted_to, @now, @promote, @moved OUTPUT, @first_run_at OUTPUT;
        SELECT @promoted_to = CASE WHEN @moved < @promote THEN @now ELSE @start END,
            @lowered_to = COALESCE(@first_run_at, @lowered_to);
        IF EXISTS (
            SELECT * FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND n = @n AND run_at >= @lowered_to AND (run_at > @start OR id > 0)
        )
            SET @lowered = 1;
    END
    ELSE
        SET @promoted_to = @now;
END;

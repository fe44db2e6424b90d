-- save_report: write the row of a consumer; a report after silence or a stop starts its totals again.
-- Arguments: @type, @consumer, @now, @completed, @failed, @dead (NULL: count them), @busy_ms, @waited_ms, @next_seconds
--     (0: the consumer stops), @handling
-- Returns: @dead: the number of dead letters since the last report
-- Transaction: the row is locked until its end
--
-- Hints name the index: the server would scan a small table, and the scan would wait for the rows of other consumers.
CREATE OR ALTER PROCEDURE mq_internal.save_report
    @type nvarchar(400), @consumer nvarchar(400), @now datetime2(7), @completed bigint, @failed bigint,
    @dead bigint OUTPUT, @busy_ms bigint, @waited_ms bigint, @next_seconds bigint, @handling nvarchar(4000)
AS
BEGIN
    -- The newest dead letters may not be committed yet: the next report counts them. The last report has no margin,
    -- because all work is done by then.
    DECLARE @margin int = CASE @next_seconds WHEN 0 THEN 0 ELSE 2 END;
    -- A stopped consumer's row is kept for an hour: without a row, none of its dead letters of this hour is counted yet.
    DECLARE @unseen int = 1, @most int = 10000, @counts bit = CASE @dead WHEN 0 THEN 0 ELSE 1 END;
    DECLARE @until datetime2(7) = DATEADD(SECOND, -@margin, @now), @due datetime2(7), @counted_at datetime2(7);
    DECLARE @goes_on bit;
    IF @next_seconds > 0
        SET @due = DATEADD(SECOND, 2 * CAST(@next_seconds AS int), @now);
    SELECT @goes_on = CASE WHEN due_at >= @now THEN 1 ELSE 0 END, @counted_at = counted_at
    FROM mq.consumer WITH (UPDLOCK, ROWLOCK, FORCESEEK, INDEX (consumer_pk))
    WHERE type = @type AND consumer = @consumer;
    IF @goes_on IS NULL
    BEGIN
        IF (SELECT COUNT(*) FROM (
            SELECT TOP (@most) consumer
            FROM mq.consumer WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (consumer_pk))
            WHERE type = @type
        ) AS c) = @most
            EXEC mq_internal.raise_error 'invalid_argument', N'consumer: this queue has {} consumers already', @most;
        SET @counted_at = DATEADD(HOUR, -@unseen, @now);
        -- Of two processes with the same name, the second waits here and then finds the row. No range lock: other
        -- consumers are not blocked.
        EXEC mq_internal.wait_for_lock 'consumer', @type, @consumer;
        SELECT @goes_on = CASE WHEN due_at >= @now THEN 1 ELSE 0 END, @counted_at = counted_at
        FROM mq.consumer WITH (UPDLOCK, ROWLOCK, FORCESEEK, INDEX (consumer_pk))
        WHERE type = @type AND consumer = @consumer;
    END;
    IF @dead IS NULL
        SELECT @dead = COUNT(*)
        FROM (
            SELECT id
            FROM mq.dead WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND died_at > @counted_at AND died_at <= @until
        ) AS d
        INNER JOIN mq.dead AS e WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON e.id = d.id
        WHERE e.consumer = @consumer COLLATE Latin1_General_100_BIN2
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    SET @dead = COALESCE(@dead, 0);
    IF @goes_on IS NULL
        INSERT INTO mq.consumer (started_at, reported_at, due_at, counted_at, completed, failed, dead, busy_ms, waited_ms, handling, type, consumer)
        VALUES (@now, @now, @due, CASE @counts WHEN 1 THEN @until ELSE @counted_at END, @completed, @failed, @dead, @busy_ms, @waited_ms, @handling, @type, @consumer);
    ELSE
        UPDATE c
        SET started_at = CASE @goes_on WHEN 1 THEN c.started_at ELSE @now END,
            reported_at = @now,
            due_at = @due,
            handling = @handling,
            -- Reports of earlier minutes pass zero: they count nothing, and the next count must not miss what died before.
            counted_at = CASE WHEN @counts = 0 OR c.counted_at > @until THEN c.counted_at ELSE @until END,
            completed = @completed + CASE @goes_on WHEN 1 THEN c.completed ELSE 0 END,
            failed = @failed + CASE @goes_on WHEN 1 THEN c.failed ELSE 0 END,
            dead = @dead + CASE @goes_on WHEN 1 THEN c.dead ELSE 0 END,
            busy_ms = @busy_ms + CASE @goes_on WHEN 1 THEN c.busy_ms ELSE 0 END,
            waited_ms = @waited_ms + CASE @goes_on WHEN 1 THEN c.waited_ms ELSE 0 END
        FROM mq.consumer AS c WITH (UPDLOCK, ROWLOCK, FORCESEEK, INDEX (consumer_pk))
        WHERE c.type = @type AND c.consumer = @consumer;
END;

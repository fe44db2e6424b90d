-- wait_for_message: wait until a message is ready or the time is up; polls 20 times per second, less often if a poll takes
--                   long.
-- Arguments:   @type (1 to 200 characters), @seconds (0 to 3,600; NULL or 0: do not wait)
-- Returns:     ready (1: a message can be claimed; else 0), next_run_at (when the next delayed message or schedule is due,
--              the next lease expires, or a limit allows the next message; NULL: nothing is expected), reason (ready, empty,
--              delayed, paused, limited, blocked or unknown)
-- Errors:      50002 invalid_argument
-- Transaction: starts no transaction; inside the caller's it keeps that transaction open while it waits
-- Example:     EXEC mq.wait_for_message N'email', 30;
CREATE OR ALTER PROCEDURE mq.wait_for_message
    @type nvarchar(max),
    @seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: a snapshot does not see messages sent later, and READPAST skips locked rows.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @ready smallint = 0, @paused bit, @limited bit, @in_groups bit, @room bit, @token datetime2(6);
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @until datetime2(7), @next datetime2(7), @began datetime2(7);
    DECLARE @scan_at datetime2(7), @left bigint, @pause int, @delay nvarchar(12), @ordered bit, @grouped bit;
    DECLARE @reason varchar(7) = 'ready';
    EXEC mq_internal.require_name 'type', @type, 0;
    SET @name = @type;
    EXEC mq_internal.require_range 'seconds', @seconds, 0, 3600;
    SET @until = DATEADD(SECOND, CAST(COALESCE(@seconds, 0) AS int), @now);
    SET @left = COALESCE(@seconds, 0) * 1000;
    WHILE 1 = 1
    BEGIN
        SET @began = @now;
        SELECT @paused = paused, @room = 1, @ordered = ordered, @grouped = grouped, @limited = CASE WHEN max_active > 0 OR rate > 0 THEN 1 ELSE 0 END,
            @in_groups = CASE WHEN grouped = 1 AND (ordered = 0 OR group_rate > 0 OR EXISTS (
                SELECT * FROM mq.queue_group WITH (READCOMMITTED, FORCESEEK, INDEX (queue_group_lane)) WHERE type = @name AND rate > 0
            )) THEN 1 ELSE 0 END
        FROM mq_internal.policy(@name);
        IF @paused = 0 AND @limited = 1
            SET @room = mq_internal.has_room(@name, @now);
        -- A claim rescues expired claims and sends due schedules only in a full scan: see make_ready. They are
        -- not ready before the next one.
        SET @scan_at = '1900-01-01';
        SELECT @scan_at = t.scan_at
        FROM (
            SELECT TOP (1) DATEADD(SECOND, 1, scanned_at) AS scan_at
            FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @name
            ORDER BY n DESC, priority, run_at, id
        ) AS t
        WHERE t.scan_at BETWEEN @now AND DATEADD(SECOND, 6, @now);
        -- A locked row is being claimed or is not committed yet.
        IF @paused = 0 AND @room = 1 AND @in_groups = 0
            AND EXISTS (SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name)
            SET @ready = 1;
        ELSE IF @paused = 0 AND @room = 1 AND @in_groups = 1 AND mq_internal.has_group(@name) = 1
            SET @ready = 1;
        ELSE IF @paused = 0 AND @room = 1 AND EXISTS (
            SELECT * FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name AND run_at <= @now
        )
            SET @ready = 1;
        ELSE IF @paused = 0 AND @room = 1 AND @scan_at <= @now AND EXISTS (
            SELECT * FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name AND lease_until <= @now
        )
            SET @ready = 1;
        ELSE IF @paused = 0 AND @room = 1 AND @scan_at <= @now AND mq_internal.next_due(@name) <= @now
            SET @ready = 1;
        -- Also count the pauses: the clock may be set back.
        IF @ready = 1 OR @now >= @until OR @left <= 0
            BREAK;
        -- Under an old snapshot, each poll scans the deleted rows that are not cleaned up yet. Pause ten times as long as
        -- the poll took.
        SET @pause = DATEDIFF(MILLISECOND, @began, SYSUTCDATETIME());
        SET @pause = CASE WHEN @pause BETWEEN 5 AND 99 THEN 10 * @pause WHEN @pause >= 100 THEN 999 ELSE 50 END;
        SET @left = @left - @pause;
        -- Dynamic SQL: on a server without WAITFOR this procedure still works for calls that do not wait.
        SET @delay = CONCAT(N'00:00:00.', RIGHT(CONCAT(N'00', @pause), 3));
        EXEC sp_executesql N'WAITFOR DELAY @delay', N'@delay nvarchar(12)', @delay = @delay;
        SET @now = SYSUTCDATETIME();
    END;
    SELECT @next = MIN(t.due)
    FROM (
        SELECT d.due
        FROM (
            SELECT TOP (1) run_at AS due
            FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @name
            ORDER BY run_at, id
        ) AS d
        UNION ALL
        SELECT CASE WHEN b.due < @scan_at THEN @scan_at ELSE b.due END
        FROM (
            SELECT TOP (1) lease_until AS due
            FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @name
            ORDER BY lease_until
        ) AS b
        UNION ALL
        SELECT CASE WHEN s.due < @scan_at THEN @scan_at ELSE s.due END
        FROM (SELECT mq_internal.next_due(@name) AS due) AS s
    ) AS t;
    IF @paused = 0 AND @room = 0
    BEGIN
        SELECT @token = CASE WHEN p.rate > 0 THEN mq_internal.next_token(l.full_at, @now, p.rate, p.rate_seconds) END
        FROM mq_internal.policy(@name) AS p
        INNER JOIN mq.limited AS l WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON l.type = @name;
        -- A message that is due earlier waits for a token or for a free place. The next lease that expires may free a
        -- place.
        IF @token > @now AND (@next < @token OR EXISTS (SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name))
            SET @next = @token;
        ELSE IF @next <= @now
            SELECT @next = MIN(lease_until) FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name;
    END;
    IF @ready = 0
        SET @reason = CASE
            WHEN @paused = 1 THEN 'paused'
            WHEN @room = 0 AND (
                EXISTS (SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name)
                OR EXISTS (SELECT * FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name AND run_at <= @now)
            ) THEN 'limited'
            WHEN @grouped = 1 AND EXISTS (
                SELECT * FROM mq.grouped WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (grouped_order)) WHERE type = @name
            ) THEN CASE @ordered WHEN 1 THEN 'blocked' ELSE 'limited' END
            WHEN mq_internal.next_due(@name) IS NOT NULL
                OR EXISTS (SELECT * FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name) THEN 'delayed'
            WHEN mq_internal.is_known(@name) = 1 THEN 'empty'
            ELSE 'unknown'
        END;
    SELECT @ready AS ready, @next AS next_run_at, @reason AS reason;
END;

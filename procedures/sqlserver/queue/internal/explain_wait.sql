-- explain_wait: when a type may be ready next, and why it is not ready now.
-- Arguments: @type, @now, @ready (from is_ready)
-- Returns: @next and @reason, as next_run_at and reason of wait_for_message
CREATE OR ALTER PROCEDURE mq_internal.explain_wait
    @type nvarchar(400), @now datetime2(7), @ready smallint, @next datetime2(7) OUTPUT, @reason varchar(7) OUTPUT
AS
BEGIN
    DECLARE @paused bit, @limited bit, @ordered bit, @grouped bit, @room bit = 1, @room_at datetime2(7), @scan_at datetime2(7);
    SELECT @paused = paused, @ordered = ordered, @grouped = grouped, @limited = CASE WHEN max_active > 0 OR rate > 0 THEN 1 ELSE 0 END
    FROM mq_internal.policy(@type);
    IF @paused = 0 AND @limited = 1
        SET @room = mq_internal.has_room(@type, @now);
    SELECT @next = NULL, @reason = 'ready', @scan_at = mq_internal.next_scan(@type, @now);
    SELECT @next = MIN(t.due)
    FROM (
        SELECT d.due
        FROM (
            SELECT TOP (1) run_at AS due
            FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type
            ORDER BY run_at, id
        ) AS d
        UNION ALL
        SELECT CASE WHEN b.due < @scan_at THEN @scan_at ELSE b.due END
        FROM (
            SELECT TOP (1) lease_until AS due
            FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type
            ORDER BY lease_until
        ) AS b
        UNION ALL
        SELECT CASE WHEN s.due < @scan_at THEN @scan_at ELSE s.due END
        FROM (SELECT mq_internal.next_due(@type) AS due) AS s WHERE s.due IS NOT NULL -- an aggregate over a NULL sends a warning
    ) AS t;
    IF @paused = 0 AND @room = 0
    BEGIN
        SELECT @room_at = CASE WHEN p.rate > 0 THEN mq_internal.next_token(l.full_at, @now, p.rate, p.rate_seconds) END
        FROM mq_internal.policy(@type) AS p
        INNER JOIN mq.limited AS l WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON l.type = @type;
        -- A place is missing: the next lease that expires may free one.
        IF COALESCE(@room_at, @now) <= @now
            SELECT @room_at = MIN(lease_until) FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type;
        -- Messages that are due earlier must wait.
        IF @next <= @now OR @next < @room_at OR EXISTS (SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type)
            SET @next = @room_at;
    END;
    IF @ready = 0
        SET @reason = CASE
            WHEN @paused = 1 THEN 'paused'
            WHEN @room = 0 AND (
                EXISTS (SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type)
                OR EXISTS (SELECT * FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND run_at <= @now)
            ) THEN 'limited'
            WHEN @grouped = 1 AND EXISTS (
                SELECT * FROM mq.grouped WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (grouped_order)) WHERE type = @type
            ) THEN CASE @ordered WHEN 1 THEN 'blocked' ELSE 'limited' END
            WHEN mq_internal.next_due(@type) IS NOT NULL
                OR EXISTS (SELECT * FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type) THEN 'delayed'
            WHEN mq_internal.is_known(@type) = 1 THEN 'empty'
            ELSE 'unknown'
        END;
END;

-- change_message: replace, postpone or update a message, if its state is N.
-- Arguments: @type, @id, @on_conflict (replace or postpone, of a message that has the dedup_key; update: change its time
--     and priority), @now (when the call began), @run_at and @priority (as in the call; of an update NULL: not changed),
--     @body and @headers (of replace)
-- Returns: @changed: 1; 0 when nothing was changed: its state is not N, another transaction is claiming it, or it is
--     due later already
--
-- The message is locked first, as in erase. A claimed or dead message is not locked: its consumer would have to wait
-- for the caller to finish it. The message is removed from its position and inserted where a new message with this
-- run_at goes. In an ordered queue a failed first message no longer blocks its group, unless an update keeps its time.
CREATE OR ALTER PROCEDURE mq_internal.change_message
    @type nvarchar(400), @id bigint, @on_conflict nvarchar(10), @now datetime2(7), @run_at datetime2(7),
    @priority smallint, @body nvarchar(max), @headers nvarchar(max), @changed smallint OUTPUT
AS
BEGIN
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @replace bit = CASE @on_conflict WHEN N'replace' THEN 1 ELSE 0 END, @grouped bit, @ring bit, @fair bit;
    DECLARE @timed bit = CASE WHEN @run_at IS NULL THEN 0 ELSE 1 END;
    DECLARE @group_key nvarchar(400), @old_priority smallint, @old_run_at datetime2(7), @attempts smallint, @error nvarchar(max);
    DECLARE @items mq.items;
    SELECT @grouped = grouped, @ring = ring, @fair = fair FROM mq_internal.policy(@type);
    SET @changed = 0;
    IF EXISTS (
        SELECT *
        FROM mq.message AS m WITH (READUNCOMMITTED)
        LEFT JOIN mq.delayed AS d WITH (READUNCOMMITTED) ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
        LEFT JOIN mq.grouped AS g WITH (READUNCOMMITTED) ON g.id = m.id
        WHERE m.id = @id AND (
            COALESCE(d.id, g.id) IS NOT NULL
            OR EXISTS (
                SELECT *
                FROM mq_internal.places(m.priority, m.group_key, m.run_at) AS p
                INNER JOIN mq.ready AS r WITH (READUNCOMMITTED)
                    ON r.type = m.type AND r.priority = p.priority AND r.lane = p.lane AND r.run_at = p.run_at AND r.id = m.id
            )
        )
    )
        SELECT @group_key = COALESCE(group_key, N''), @old_priority = priority, @old_run_at = run_at
        FROM mq.message WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE id = @id AND type = @type;
    IF @old_run_at IS NULL OR (@on_conflict = N'postpone' AND @old_run_at >= @run_at)
        RETURN;
    -- While the message is locked, no other session writes its error.
    IF @replace = 0
        SELECT @error = error FROM mq.delayed WITH (READUNCOMMITTED) WHERE type = @type AND run_at = @old_run_at AND id = @id;
    EXEC mq_internal.leave_place @type, @id, @old_priority, @group_key, @old_run_at, @grouped, @attempts OUTPUT;
    IF @attempts IS NULL
        RETURN;

    INSERT INTO @items (id, attempts) VALUES (@id, @attempts);
    SELECT @changed = 1, @run_at = COALESCE(@run_at, @old_run_at);
    IF @on_conflict = N'postpone' OR @priority IS NULL
        SET @priority = @old_priority;
    IF @replace = 1
    BEGIN
        UPDATE mq.message
        SET body = @body, headers = @headers, priority = @priority, run_at = @run_at, sent_run_at = NULL
        WHERE id = @id;
        EXEC mq_internal.forget_steps @items;
        SET @attempts = 0;
    END
    ELSE
        UPDATE mq.message
        SET priority = @priority, run_at = @run_at, sent_run_at = CASE @timed WHEN 0 THEN sent_run_at END
        WHERE id = @id;
    IF @run_at > @now
        INSERT INTO mq.delayed (type, run_at, id, priority, attempts, error)
        VALUES (@type, @run_at, @id, @priority, @attempts, @error);
    ELSE IF @grouped = 1
        -- issue_tickets writes its ticket: another claim may be dropping one at the old or the new position.
        INSERT INTO mq.grouped (type, group_key, id, attempts) VALUES (@type, @group_key, @id, @attempts);
    ELSE
    BEGIN
        INSERT INTO mq.ready (type, priority, lane, run_at, id, attempts)
        SELECT @type, priority, lane, run_at, @id, @attempts FROM mq_internal.place(@ring, @fair, @grouped, @priority, @group_key, @run_at);
        IF @run_at < @now OR @ring = 1
            EXEC mq_internal.lower_mark @type;
    END;
    IF @grouped = 1 AND (@timed = 1 OR @run_at <= @now)
    BEGIN
        IF @run_at <= @now
            -- As when a failed first message is promoted: it is the first of its group again.
            DELETE FROM mq.group_lock WITH (ROWLOCK) WHERE id = @id AND blocks = 1;
        ELSE
            EXEC mq_internal.free_groups @type, @items;
        EXEC mq_internal.issue_tickets @type, @items, 1;
    END;
END;

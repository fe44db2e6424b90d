-- remove_ready: remove one ready message that is not claimed from mq.ready; in an ordered queue it then blocks its
--     group.
-- Returns: @type, @attempt (the number of the next attempt) and @consumer (the caller); @type is NULL when the message is
--     not ready, is being claimed, or its group is blocked in an ordered queue
CREATE OR ALTER PROCEDURE mq_internal.remove_ready
    @id bigint, @type nvarchar(400) OUTPUT, @attempt smallint OUTPUT, @consumer nvarchar(400) OUTPUT
AS
BEGIN
    DECLARE @named nvarchar(400), @group_key nvarchar(400), @priority smallint, @run_at datetime2(7), @grouped bit;
    DECLARE @resource nvarchar(255), @got int, @head bigint, @ordered bit;
    SELECT @type = NULL, @attempt = NULL, @consumer = NULL;
    SELECT @named = type, @group_key = COALESCE(group_key, N''), @priority = priority, @run_at = run_at
    FROM mq.message WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE id = @id;
    IF @named IS NULL
        RETURN;
    SELECT @grouped = grouped, @ordered = ordered FROM mq_internal.policy(@named);
    IF @ordered = 1
    BEGIN
        -- As in pick_grouped: every call that takes or unblocks a group holds this lock.
        SET @resource = mq_internal.lock_name('group', @named, @group_key);
        EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive',
            @LockOwner = 'Transaction', @LockTimeout = 0;
        IF @got < 0
            RETURN;
        -- Another one first: a dead letter may stop the group of a message that waits for its retry.
        SELECT TOP (1) @head = id
        FROM mq.group_lock WITH (READUNCOMMITTED)
        WHERE type = @named AND group_key = @group_key
        ORDER BY CASE WHEN id = @id THEN 1 ELSE 0 END;
    END;

    -- A due message may still be delayed: the rollback of the take also undid its promotion. Check this before mq.ready,
    -- because a claim may be promoting the message.
    IF @head IS NULL OR @head = @id
    BEGIN
        SELECT @attempt = attempts + 1
        FROM mq.delayed WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @named AND run_at = @run_at AND id = @id AND run_at <= SYSUTCDATETIME();
        IF @attempt IS NOT NULL
            DELETE FROM mq.delayed WHERE type = @named AND run_at = @run_at AND id = @id;
    END;
    IF @attempt IS NULL AND @head IS NULL AND @grouped = 1
    BEGIN
        SELECT @attempt = attempts + 1
        FROM mq.grouped WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE id = @id;
        IF @attempt IS NOT NULL
        BEGIN
            -- Insert this row first: it shows other sessions what this call has taken. See issue_tickets.
            IF @ordered = 1
                INSERT INTO mq.group_lock (type, group_key, id) VALUES (@named, @group_key, @id);
            SET @head = @id;
            DELETE FROM mq.grouped WHERE id = @id;
        END;
    END;
    IF @attempt IS NULL AND @grouped = 0 AND NOT EXISTS (
        SELECT * FROM mq.delayed WITH (READUNCOMMITTED) WHERE type = @named AND run_at = @run_at AND id = @id
    )
    BEGIN
        EXEC mq_internal.leave_place @named, @id, @priority, @group_key, @run_at, 0, @attempt OUTPUT;
        SET @attempt = @attempt + 1;
    END;

    IF @attempt IS NOT NULL
    BEGIN
        -- As after a claim: the message blocks its group.
        IF @ordered = 1 AND @head IS NULL
            INSERT INTO mq.group_lock (type, group_key, id) VALUES (@named, @group_key, @id);
        SELECT @type = @named, @consumer = mq_internal.consumer_name(NULL);
    END
    ELSE IF @ordered = 1
        EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Transaction';
END;

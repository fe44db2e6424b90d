-- remove_ready: take one ready message that nobody holds out of the ready table; in an ordered queue its group waits for it.
-- Arguments:   @id
-- Returns:     @type, @attempt (the one that would begin now) and @reader (the caller); @type is NULL when it is not ready, is
--              being claimed at this moment, or its ordered group is at work
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits
-- Example:     EXEC mq.remove_ready 17, @type OUTPUT, @attempt OUTPUT, @reader OUTPUT;

CREATE OR ALTER PROCEDURE mq.remove_ready
    @id bigint,
    @type nvarchar(400) OUTPUT,
    @attempt smallint OUTPUT,
    @reader nvarchar(400) OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @named nvarchar(400), @group_key nvarchar(400), @priority smallint, @run_at datetime2(7), @grouped bit, @ring bit;
    DECLARE @resource nvarchar(255), @got int, @head bigint, @ordered bit;
    SELECT @type = NULL, @attempt = NULL, @reader = NULL;
    SELECT @named = type, @group_key = COALESCE(group_key, N''), @priority = priority, @run_at = run_at
    FROM mq.message WITH (READPAST, READCOMMITTEDLOCK)
    WHERE id = @id;
    IF @named IS NULL
        RETURN;
    SELECT @grouped = grouped, @ordered = ordered FROM mq.policy(@named);
    SET @ring = mq.is_ring(@named);
    IF @ordered = 1
    BEGIN
        -- As in pick_grouped: each call that takes a group or frees it holds this lock.
        SET @resource = mq.lock_name('group', @named, @group_key);
        EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive',
            @LockOwner = 'Transaction', @LockTimeout = 0;
        IF @got < 0
            RETURN;
        SELECT @head = id FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @named AND group_key = @group_key;
    END;

    -- Due but not promoted: the take that rolled back has taken its promotion back as well. Before the ready table, for another
    -- claim may be promoting it.
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
            -- First this row, by which others see what we have: see issue_tickets.
            IF @ordered = 1
                INSERT INTO mq.group_lock (type, group_key, id) VALUES (@named, @group_key, @id);
            SET @head = @id;
            DELETE FROM mq.grouped WHERE id = @id;
        END;
    END;
    IF @attempt IS NULL AND @grouped = 0
    BEGIN
        SELECT @attempt = attempts + 1
        FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @named AND priority = @priority AND run_at = @run_at AND id = @id;
        -- In a ring some stand at their ordinary place still.
        IF @attempt IS NULL AND @ring = 1
        BEGIN
            SELECT @priority = -32768, @run_at = '0001-01-01';
            SELECT @attempt = attempts + 1
            FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @named AND priority = @priority AND run_at = @run_at AND id = @id;
        END;
        IF @attempt IS NOT NULL
            DELETE FROM mq.ready WHERE type = @named AND priority = @priority AND run_at = @run_at AND id = @id;
    END;

    IF @attempt IS NOT NULL
    BEGIN
        -- As after a claim.
        IF @ordered = 1 AND @head IS NULL
            INSERT INTO mq.group_lock (type, group_key, id) VALUES (@named, @group_key, @id);
        SELECT @type = @named, @reader = mq.reader_name(NULL);
    END
    ELSE IF @ordered = 1
        EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Transaction';
END;
GO

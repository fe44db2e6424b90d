-- group_allowance: how many messages of a group its limits allow a claim to take.
-- Arguments: @type, @group_key, @ordered, @places (0: no limit), @rate and @seconds (the policy), @size (messages that
--     the claim wants)
-- Returns: @size: 0 to the given @size; @put_off: 1 when a place is free but there is no token (then @size is 1);
--     @full_at (of the bucket; NULL without a rate); @changed: 1 when the caller must keep the group's lock until it
--     commits
-- Transaction: the caller's holds the group's application lock; never waits
CREATE OR ALTER PROCEDURE mq_internal.group_allowance
    @type nvarchar(400), @group_key nvarchar(400), @ordered bit, @places int, @rate int, @seconds int, @size int OUTPUT,
    @put_off bit OUTPUT, @full_at datetime2(6) OUTPUT, @changed bit OUTPUT
AS
BEGIN
    DECLARE @now datetime2(6) = SYSUTCDATETIME(), @tokens int, @room int;
    SELECT @put_off = 0, @changed = 0, @full_at = NULL;
    IF @ordered = 0
        EXEC mq_internal.forget_freed @type, @group_key, @changed OUTPUT;
    -- Read without locks: a session that changes these rows holds the group's lock.
    IF @ordered = 0 AND @places > 0
    BEGIN
        SELECT @room = @places - COUNT(*)
        FROM mq.group_lock WITH (READUNCOMMITTED)
        WHERE type = @type AND group_key = @group_key AND blocks = 0;
        IF @room < @size
            SET @size = CASE WHEN @room > 0 THEN @room ELSE 0 END;
    END;
    IF @rate > 0 AND @size > 0
    BEGIN
        SELECT @full_at = full_at
        FROM mq.bucket WITH (READUNCOMMITTED, FORCESEEK, INDEX (bucket_pk))
        WHERE type = @type AND group_key = @group_key;
        SET @full_at = COALESCE(@full_at, @now);
        -- The clock was set back, or the limit was changed: the bucket is empty and starts to fill now.
        IF @full_at > DATEADD(SECOND, @seconds, @now)
        BEGIN
            SELECT @full_at = DATEADD(SECOND, @seconds, @now), @changed = 1;
            UPDATE b
            SET full_at = @full_at
            FROM mq.bucket AS b WITH (ROWLOCK, FORCESEEK, INDEX (bucket_pk))
            WHERE b.type = @type AND b.group_key = @group_key;
        END;
        SET @tokens = mq_internal.tokens(@full_at, @now, @rate, @seconds);
        IF @tokens = 0
            SELECT @put_off = 1, @size = 1;
        ELSE IF @tokens < @size
            SET @size = @tokens;
    END;
END;

-- allowance: how many messages the limits of a type allow a claim to take now; other claims of the type get none until
--     this transaction ends.
-- Arguments: @type, @size (messages that the claim wants)
-- Returns: @allowed: 0 to @size; also 0 while another claim of the type is in progress
-- Transaction: keeps the type's row of mq.limited locked until it ends; never waits
--
-- A finish must not wait for a claim, nor a claim for a finish. So a finish inserts rows into mq.freed instead of
-- updating mq.limited. Until the finish commits, its rows are locked and claims skip them: its messages still count as
-- active.
CREATE OR ALTER PROCEDURE mq_internal.allowance
    @type nvarchar(400), @size int, @allowed int OUTPUT
AS
BEGIN
    -- The maximum number of expired claims to rescue.
    DECLARE @rescue int = 20;
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @max_active int, @rate int, @seconds int, @tokens int, @rescued bigint = 0;
    DECLARE @active int, @full_at datetime2(6), @counted_at datetime2(7), @room int, @found int;
    SELECT @allowed = 0, @max_active = max_active, @rate = rate, @seconds = rate_seconds FROM mq_internal.policy(@type);
    SELECT @active = active, @full_at = full_at, @counted_at = counted_at
    FROM mq.limited WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE type = @type;
    IF @active IS NULL
        RETURN;
    IF @rate > 0
    BEGIN
        -- The clock was set back, or the limit was changed: the bucket is empty and starts to fill now.
        IF @full_at > DATEADD(SECOND, @seconds, @now)
            UPDATE mq.limited SET full_at = DATEADD(SECOND, @seconds, @now) WHERE type = @type;
        SET @tokens = mq_internal.tokens(@full_at, @now, @rate, @seconds);
        IF @tokens < @size
            SET @size = @tokens;
        IF @size = 0
            RETURN;
    END;
    IF @max_active > 0
    BEGIN
        -- Batches of claims that did not see the limit yet: searched once per second, and by every claim for some seconds
        -- after set_queue.
        IF @now NOT BETWEEN @counted_at AND DATEADD(SECOND, 1, @counted_at)
        BEGIN
            EXEC mq_internal.count_batches @type, 0, @found OUTPUT;
            UPDATE mq.limited
            SET counted_at = CASE WHEN counted_at BETWEEN @now AND DATEADD(SECOND, 10, @now) THEN counted_at ELSE @now END,
                active = active + @found
            WHERE type = @type;
            SET @active = @active + @found;
        END;
        IF @max_active - @active < @size
            EXEC mq_internal.take_freed @type, @active OUTPUT;
        IF @max_active <= @active AND EXISTS (
            SELECT * FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @now
        )
        BEGIN
            EXEC mq_internal.rescue @type, @rescue, @rescued OUTPUT;
            EXEC mq_internal.take_freed @type, @active OUTPUT;
        END;
        SET @room = @max_active - @active;
        IF @room < @size
            SET @size = CASE WHEN @room > 0 THEN @room ELSE 0 END;
    END;
    SET @allowed = @size;
END;

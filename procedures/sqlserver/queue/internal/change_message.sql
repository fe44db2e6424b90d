-- change_message: replace or postpone a message that is new, for a sender of the same dedup_key.
-- Arguments:   @type, @id, @on_conflict (replace: @body, @run_at, @priority and @headers become the message's, and its attempts count
--              from 0; postpone: only @run_at, if that is later), @now
-- Returns:     @changed (0: it is active, dead, being claimed at this moment, or due later already)
-- Errors:      none
-- Transaction: joins the caller's; never waits for a message that is being claimed
-- Example:     EXEC mq.change_message N'email', 17, N'replace', N'{}', @now, 0, NULL, @now, @changed OUTPUT;

CREATE OR ALTER PROCEDURE mq.change_message
    @type nvarchar(400),
    @id bigint,
    @on_conflict nvarchar(10),
    @body nvarchar(max),
    @run_at datetime2(7),
    @priority smallint,
    @headers nvarchar(max),
    @now datetime2(7),
    @changed smallint OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- For as long as this call: senders may be at any level, and locked rows can be passed over at this one.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @replace bit = CASE @on_conflict WHEN N'replace' THEN 1 ELSE 0 END, @ordered bit, @ring bit = mq.is_ring(@type);
    DECLARE @group_key nvarchar(400), @old_priority smallint, @before datetime2(7), @attempts smallint, @error nvarchar(max);
    DECLARE @items mq.items;
    SELECT @ordered = ordered FROM mq.policy(@type);
    SET @changed = 0;
    IF @replace = 0
        SET @before = @run_at;
    EXEC mq.leave_place @type, @id, @before, @ordered, @group_key OUTPUT, @old_priority OUTPUT, @attempts OUTPUT, @error OUTPUT;
    IF @attempts IS NULL
        RETURN;
    SET @changed = 1;
    IF @replace = 1
    BEGIN
        UPDATE mq.message
        SET body = @body, headers = @headers, priority = @priority, run_at = @run_at, sent_run_at = NULL
        WHERE id = @id;
        SELECT @attempts = 0, @error = NULL;
    END
    ELSE
    BEGIN
        UPDATE mq.message SET run_at = @run_at, sent_run_at = NULL WHERE id = @id;
        SET @priority = @old_priority;
    END;

    IF @run_at > @now
        INSERT INTO mq.delayed (type, run_at, id, priority, attempts, error)
        VALUES (@type, @run_at, @id, @priority, @attempts, @error);
    ELSE IF @ordered = 0
    BEGIN
        INSERT INTO mq.ready (type, priority, run_at, id, attempts)
        VALUES (@type, CASE @ring WHEN 1 THEN -32768 ELSE @priority END, CASE @ring WHEN 1 THEN '0001-01-01' ELSE @run_at END, @id,
            @attempts);
        EXEC mq.lower_ring @type, @id;
        IF @run_at < @now
            EXEC mq.lower_mark @type;
    END
    ELSE
    BEGIN
        INSERT INTO mq.grouped (type, group_key, id, attempts) VALUES (@type, @group_key, @id, @attempts);
        -- As when a failed head is promoted: its group may go on, and it is the first of it again.
        DELETE FROM mq.group_lock WITH (ROWLOCK) WHERE id = @id;
    END;
    IF @ordered = 1
    BEGIN
        INSERT INTO @items (id, attempts) VALUES (@id, @attempts);
        -- A failed head that is replaced has not failed any more, and its group does not wait for it.
        IF @run_at > @now AND @replace = 1
            EXEC mq.free_groups @type, @items;
        EXEC mq.issue_tickets @type, @items;
    END;
END;
GO

-- send_one: send one message whose arguments have been checked.
-- Arguments: @type, @body, @run_at (NULL: now), @priority (NULL: 0), @group_key, @dedup_key, @max_attempts, @headers,
--     @source (NULL: the application name), @on_conflict (NULL: keep), @now (when the call began)
-- Returns: @id, @created and @changed, as from send_message
-- Transaction: waits for an open transaction that has sent or is finishing a message with the same dedup_key
CREATE OR ALTER PROCEDURE mq_internal.send_one
    @type nvarchar(400), @body nvarchar(max), @run_at datetime2(7), @priority smallint, @group_key nvarchar(400),
    @dedup_key nvarchar(400), @max_attempts smallint, @headers nvarchar(max), @source nvarchar(400),
    @on_conflict nvarchar(10), @now datetime2(7), @id bigint OUTPUT, @created smallint OUTPUT, @changed smallint OUTPUT
AS
BEGIN
    DECLARE @grouped bit, @ring bit, @fair bit;
    SELECT @id = NULL, @created = 1, @changed = 0, @run_at = COALESCE(@run_at, @now), @priority = COALESCE(@priority, 0);
    -- Two senders of the same new key: the second one waits here. At the unique index it would get an error. A range lock
    -- would also block senders of other keys, and calls that complete a message with the next key.
    IF @dedup_key IS NOT NULL
    BEGIN
        EXEC mq_internal.wait_for_lock 'dedup', @type, @dedup_key;
        SELECT @id = id
        FROM mq.dedup WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (dedup_key_once))
        WHERE type = @type AND dedup_key = @dedup_key;
        IF @id IS NOT NULL
        BEGIN
            SET @created = 0;
            IF @on_conflict <> N'keep'
                EXEC mq_internal.change_message @type, @id, @on_conflict, @now, @run_at, @priority, @body, @headers, @changed OUTPUT;
            RETURN;
        END;
    END;
    SELECT @grouped = grouped, @ring = ring, @fair = fair FROM mq_internal.policy(@type);
    INSERT INTO mq.message (run_at, created_at, priority, max_attempts, type, body, headers, group_key, dedup_key, source)
    VALUES (@run_at, @now, @priority, @max_attempts, @type, @body, @headers, @group_key, @dedup_key, mq_internal.consumer_name(@source));
    SET @id = SCOPE_IDENTITY();
    IF @dedup_key IS NOT NULL
        INSERT INTO mq.dedup (type, dedup_key, id) VALUES (@type, @dedup_key, @id);
    IF @run_at > @now
        INSERT INTO mq.delayed (type, run_at, id, priority, attempts) VALUES (@type, @run_at, @id, @priority, 0);
    ELSE
    BEGIN
        IF @grouped = 1
            INSERT INTO mq.grouped (type, group_key, id, attempts) VALUES (@type, COALESCE(@group_key, N''), @id, 0);
        INSERT INTO mq.ready (type, priority, lane, run_at, id, attempts)
        SELECT @type, priority, lane, run_at, @id, 0 FROM mq_internal.place(@ring, @fair, @grouped, @priority, @group_key, @run_at);
        IF @run_at < @now
            EXEC mq_internal.lower_mark @type;
    END;
END;

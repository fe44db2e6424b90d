-- take_group: take the first messages of a group that is not blocked; if it has no token left, delay its first message
--     instead.
-- Arguments: @type, @group_key, @take (1: called by take_batch; see pick_grouped), @late (messages that have a ticket
--     and are not in a group yet), @size (maximum number of messages, up to 1,000; 1 in an ordered queue), @priority
--     and @run_at (of the ticket), @batch_key, @ordered, @moment (in a fair queue, the place of the messages in the
--     batch; else NULL)
-- Returns: @head: the first message that was taken or delayed; NULL when there is none; @attempts: its attempts so far;
--     @count: number of new rows of mq.claimed
-- Transaction: keeps the group's application lock if it has changed something
CREATE OR ALTER PROCEDURE mq_internal.take_group
    @type nvarchar(400),
    @group_key nvarchar(400),
    @take bit,
    @late mq.items READONLY,
    @size int,
    @priority smallint,
    @run_at datetime2(7),
    @batch_key uniqueidentifier,
    @ordered bit,
    @moment datetime2(7),
    @head bigint OUTPUT,
    @attempts smallint OUTPUT,
    @count int OUTPUT
AS
BEGIN
    DECLARE @resource nvarchar(255) = mq_internal.lock_name('group', @type, @group_key), @got int, @first bigint, @before bigint;
    DECLARE @places int, @rate int, @seconds int, @put_off bit = 0, @changed bit = 0, @full_at datetime2(6), @now datetime2(6), @last bigint = -9223372036854775808;
    DECLARE @some mq.items, @taken mq.items, @again mq.items;
    SELECT @head = NULL, @attempts = NULL, @count = 0;
    SELECT @places = places, @rate = rate, @seconds = seconds FROM mq_internal.group_limits(@type, @group_key);
    -- Far below 5,000 locks per statement, where the server escalates to a table lock.
    IF @size > 1000
        SET @size = 1000;
    EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = 0;
    IF @got < 0
        RETURN;
    IF EXISTS (SELECT * FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND group_key = @group_key AND blocks = 1)
        SET @size = 0;
    IF @size > 0 AND EXISTS (SELECT * FROM @late)
        -- Sent before their sender could see that the queue is grouped. A call that erases a message locks it first. If
        -- this call can lock it and no state table has it, it is not being erased.
        INSERT INTO mq.grouped (type, group_key, id, attempts)
        SELECT m.type, @group_key, m.id, i.attempts
        FROM @late AS i
        INNER JOIN mq.message AS m WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = i.id
        WHERE NOT EXISTS (SELECT * FROM mq.grouped AS g WITH (READUNCOMMITTED) WHERE g.id = i.id)
            AND NOT EXISTS (SELECT * FROM mq.group_lock AS l WITH (READUNCOMMITTED) WHERE l.id = i.id)
            AND NOT EXISTS (SELECT * FROM mq.dead AS e WITH (READUNCOMMITTED) WHERE e.id = i.id)
            AND NOT EXISTS (
                SELECT * FROM mq.delayed AS d WITH (READUNCOMMITTED)
                WHERE d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
            )
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    IF @size > 0 AND (@ordered = 0 OR @rate > 0)
        EXEC mq_internal.group_allowance @type, @group_key, @ordered, @places, @rate, @seconds, @size OUTPUT, @put_off OUTPUT, @full_at OUTPUT,
            @changed OUTPUT;

    IF @size > 0 AND @ordered = 1
    BEGIN
        SELECT TOP (1) @first = id
        FROM mq.grouped WITH (READUNCOMMITTED)
        WHERE type = @type AND group_key = @group_key
        ORDER BY id;
        -- Skip the group if another transaction is cancelling or purging its first message: that message may stay and then
        -- comes first. Only its old row version shows it. Without row versions this scan waits for that transaction and for
        -- no other.
        IF @first IS NOT NULL
            SELECT TOP (1) @before = id
            FROM mq.grouped WITH (ROWLOCK, FORCESEEK, INDEX (grouped_order))
            WHERE type = @type AND group_key = @group_key AND id < @first
            ORDER BY id;
        IF @before IS NULL
            SELECT @head = id, @attempts = attempts
            FROM mq.grouped WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE id = @first;
        -- Check again: a rollback of a promotion or of a put_back leaves the group unblocked for a moment.
        IF EXISTS (SELECT * FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND group_key = @group_key AND blocks = 1)
            SET @head = NULL;
    END;
    -- In a queue without order, skip messages that others have locked. Read the ids first: rows of mq.grouped are locked by
    -- id only, see issue_tickets.
    WHILE @ordered = 0 AND @count < @size
    BEGIN
        DELETE FROM @some;
        INSERT INTO @some (id, attempts)
        SELECT TOP (@size) id, attempts
        FROM mq.grouped WITH (READUNCOMMITTED)
        WHERE type = @type AND group_key = @group_key AND id > @last
        ORDER BY id;
        IF @@ROWCOUNT = 0
            BREAK;
        SELECT @last = MAX(id) FROM @some;
        INSERT INTO @taken (id, attempts)
        SELECT TOP (@size - @count) g.id, g.attempts
        FROM @some AS s
        INNER JOIN mq.grouped AS g WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON g.id = s.id
        ORDER BY s.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SET @count = @count + @@ROWCOUNT;
    END;
    IF @ordered = 0
        SELECT TOP (1) @head = id, @attempts = attempts FROM @taken ORDER BY id;
    IF @head IS NULL
    BEGIN
        IF @changed = 0
            EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Transaction';
        RETURN;
    END;
    IF @ordered = 0
    BEGIN
        -- A message that was active before has returned: delete the record of its old place.
        DELETE f
        OUTPUT deleted.id, 0 INTO @again (id, attempts)
        FROM @taken AS t
        INNER JOIN mq.group_freed AS f WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (group_freed_pk))
            ON f.type = @type AND f.group_key = @group_key AND f.id = t.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF @@ROWCOUNT > 0
            DELETE l
            FROM @again AS a
            INNER JOIN mq.group_lock AS l WITH (ROWLOCK) ON l.id = a.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    END;
    IF @put_off = 1
    BEGIN
        SELECT @count = 0, @run_at = mq_internal.next_token(@full_at, SYSUTCDATETIME(), @rate, @seconds);
        -- The message waits like a failed one of an ordered queue: it is delayed, and its row in mq.group_lock blocks the
        -- group until promote.
        INSERT INTO mq.group_lock (type, group_key, id, blocks) VALUES (@type, @group_key, @head, 1);
        DELETE FROM mq.grouped WHERE id = @head;
        UPDATE mq.message SET sent_run_at = COALESCE(sent_run_at, run_at), run_at = @run_at WHERE id = @head;
        INSERT INTO mq.delayed (type, run_at, id, priority, attempts)
        SELECT @type, @run_at, @head, priority, @attempts FROM mq.message WHERE id = @head;
        RETURN;
    END;

    IF @ordered = 1
    BEGIN
        -- Insert this row first: it shows other sessions what this call has taken. See issue_tickets. A take needs no row:
        -- it leaves the group unblocked, with a ticket.
        IF @take = 0
            INSERT INTO mq.group_lock (type, group_key, id) VALUES (@type, @group_key, @head);
        DELETE FROM mq.grouped WHERE id = @head;
        INSERT INTO mq.claimed (batch_key, id, attempt, priority, run_at) VALUES (@batch_key, @head, @attempts + 1, @priority, COALESCE(@moment, @run_at));
        SET @count = 1;
    END
    ELSE
    BEGIN
        IF @take = 0
            INSERT INTO mq.group_lock (type, group_key, id, blocks) SELECT @type, @group_key, id, 0 FROM @taken;
        DELETE g
        FROM @taken AS t
        INNER JOIN mq.grouped AS g WITH (ROWLOCK) ON g.id = t.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        INSERT INTO mq.claimed (batch_key, id, attempt, priority, run_at)
        SELECT @batch_key, m.id, t.attempts + 1, m.priority, COALESCE(@moment, m.run_at)
        FROM @taken AS t
        INNER JOIN mq.message AS m ON m.id = t.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    END;
    IF @rate > 0
    BEGIN
        SELECT @now = SYSUTCDATETIME(), @full_at = mq_internal.full_after(@full_at, @now, @count, @rate, @seconds);
        UPDATE b
        SET full_at = @full_at
        FROM mq.bucket AS b WITH (ROWLOCK, FORCESEEK, INDEX (bucket_pk))
        WHERE b.type = @type AND b.group_key = @group_key;
        IF @@ROWCOUNT = 0
            INSERT INTO mq.bucket (type, group_key, full_at) VALUES (@type, @group_key, @full_at);
    END;
END;

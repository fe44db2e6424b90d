-- take_head: take the first message of a group of an ordered queue, when the group is free.
-- Arguments:   @type, @group_key, @take (1: the group stays free), @late (messages that have a ticket and are in no group yet),
--              @priority and @run_at (of the ticket), @batch_key
-- Returns:     @head and @attempts of the message, which is in mq.claimed now; NULL when the group cannot be taken
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; keeps the group's application lock when it returns a message
-- Example:     EXEC mq.take_head N'invoice', N'customer-7', 0, @late, 0, @run_at, @batch_key, @head OUTPUT, @attempts OUTPUT;

CREATE OR ALTER PROCEDURE mq.take_head
    @type nvarchar(400),
    @group_key nvarchar(400),
    @take bit,
    @late mq.items READONLY,
    @priority smallint,
    @run_at datetime2(7),
    @batch_key uniqueidentifier,
    @head bigint OUTPUT,
    @attempts smallint OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @resource nvarchar(255) = mq.lock_name('group', @type, @group_key), @got int, @first bigint, @before bigint;
    SELECT @head = NULL, @attempts = NULL;
    EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = 0;
    IF @got < 0
        RETURN;
    IF NOT EXISTS (SELECT * FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND group_key = @group_key)
    BEGIN
        IF EXISTS (SELECT * FROM @late)
            -- Sent by a transaction that began before the queue was made ordered. A call that erases one locks it first: if we can
            -- lock it and it is in no table of its state, it is not being erased.
            INSERT INTO mq.grouped (type, group_key, id, attempts)
            SELECT m.type, COALESCE(m.group_key, N''), m.id, i.attempts
            FROM @late AS i
            INNER JOIN mq.message AS m WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = i.id
            WHERE NOT EXISTS (SELECT * FROM mq.grouped AS g WITH (READUNCOMMITTED) WHERE g.id = i.id)
                AND NOT EXISTS (SELECT * FROM mq.dead AS e WITH (READUNCOMMITTED) WHERE e.id = i.id)
                AND NOT EXISTS (
                    SELECT * FROM mq.delayed AS d WITH (READUNCOMMITTED)
                    WHERE d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
                )
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SELECT TOP (1) @first = id
        FROM mq.grouped WITH (READUNCOMMITTED)
        WHERE type = @type AND group_key = @group_key
        ORDER BY id;
        -- The group of a head that is being cancelled or purged is passed over: the head may stay, and comes first. Only the old
        -- version of its row shows it; without row versions this scan waits for that transaction, and for no other.
        IF @first IS NOT NULL
            SELECT TOP (1) @before = id
            FROM mq.grouped
            WHERE type = @type AND group_key = @group_key AND id < @first
            ORDER BY id;
        IF @before IS NULL
            SELECT @head = id, @attempts = attempts
            FROM mq.grouped WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE id = @first;
        -- Once more: what is promoted or put back and rolls back has freed its group for a moment.
        IF EXISTS (SELECT * FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND group_key = @group_key)
            SET @head = NULL;
    END;
    IF @head IS NULL
    BEGIN
        EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Transaction';
        RETURN;
    END;
    -- First this row, by which others see what we have: see issue_tickets. A take needs none, it leaves the group free, with a
    -- ticket.
    IF @take = 0
        INSERT INTO mq.group_lock (type, group_key, id) VALUES (@type, @group_key, @head);
    DELETE FROM mq.grouped WHERE id = @head;
    INSERT INTO mq.claimed (batch_key, id, attempt, priority, run_at) VALUES (@batch_key, @head, @attempts + 1, @priority, @run_at);
END;
GO

-- pick_ordered: take the head messages of up to @size groups of an ordered queue, one a group.
-- Arguments:   @type, @size, @take (1: the messages are finished by the caller's own commit), @batch_key
-- Returns:     @count: how many rows of mq.claimed have that key now
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.pick_ordered N'invoice', 10, 0, @batch_key, @count OUTPUT;
--
-- A row of mq.ready is a ticket here: 'the group of this message has something to do', and every message brings one, so that
-- senders lock nothing. A ticket is only a hint, and is read without keeping a lock. Whether its group is free is looked at under
-- the group's application lock: sp_getapplock for the transaction, with a timeout of 0, so that nobody waits for it. It is not a
-- row, so it needs none for each group that may ever come, and it is seen by a test, which a row that is being deleted is not.
-- Whoever frees a group has that lock as well (free_groups); it is given back at once when the group cannot be taken.
--
-- The rule that no group gets stuck is: of a group that is free, one message in mq.grouped has a ticket of its own. Who ends a
-- group's work issues one, after its last look at the group. Of a group at work a claim drops all tickets but the first, while it
-- holds that one and its message, so that no cancel can take it away. Tickets of messages that are not in mq.grouped are dropped:
-- they get new ones with their return. The look comes before the lock of the ticket: who cancels has had the ticket by then.
--
-- READUNCOMMITTED shows what others have inserted and hides what they have deleted, and waits for nobody. What follows from it is
-- looked at a second time, or kept by a lock, before anything is done.

CREATE OR ALTER PROCEDURE mq.pick_ordered
    @type nvarchar(400),
    @size int,
    @take bit,
    @batch_key uniqueidentifier,
    @count int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Each group costs a lock until the caller commits.
    DECLARE @groups int = 250;
    DECLARE @tickets int = 10000;
    -- Dropping costs writes and locks: a few tickets of groups at work are walked again by the next claim.
    DECLARE @few int = 40;
    DECLARE @left int = CASE WHEN @size < @groups THEN @size ELSE @groups END;
    DECLARE @chunk int, @walked int = 0, @read int, @n int, @more int;
    DECLARE @above int = -32769, @run_at datetime2(7) = '0001-01-01', @id bigint = 0;
    DECLARE @group_key nvarchar(400), @ticket_priority smallint, @ticket_run_at datetime2(7);
    DECLARE @resource nvarchar(255), @got int, @first bigint, @before bigint, @head bigint, @attempts smallint, @picked bit;
    DECLARE @seen TABLE (
        n int NOT NULL PRIMARY KEY,
        id bigint NOT NULL,
        priority smallint NOT NULL,
        run_at datetime2(7) NOT NULL,
        attempts smallint NOT NULL,
        group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
        what int NOT NULL,
        nth int NOT NULL
    );
    DECLARE @used TABLE (group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @kept TABLE (group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @late TABLE (id bigint NOT NULL PRIMARY KEY, attempts smallint NOT NULL);
    DECLARE @spent TABLE (
        n int NOT NULL PRIMARY KEY, priority smallint NOT NULL, run_at datetime2(7) NOT NULL, id bigint NOT NULL
    );
    DECLARE @heads mq.items;
    SET @count = 0;
    SET @chunk = 50 + 2 * @left;

    WHILE @left > 0 AND @walked < @tickets
    BEGIN
        DELETE FROM @seen;
        DELETE FROM @kept;
        DELETE FROM @spent;
        -- What a ticket stands for: 0 nothing, 1 a group at work, 2 a free group, 3 a message that is in no group yet.
        INSERT INTO @seen (n, id, priority, run_at, attempts, group_key, what, nth)
        SELECT t.n, t.id, t.priority, t.run_at, t.attempts, t.group_key, t.what,
            ROW_NUMBER() OVER (PARTITION BY t.group_key ORDER BY CASE t.what WHEN 0 THEN 1 ELSE 0 END, t.n)
        FROM (
            SELECT k.id, k.priority, k.run_at, k.attempts, k.group_key,
                ROW_NUMBER() OVER (ORDER BY k.priority, k.run_at, k.id) AS n,
                CASE
                    WHEN k.message_id IS NULL THEN 0
                    WHEN k.grouped_id IS NOT NULL THEN CASE WHEN k.lock_id IS NULL THEN 2 ELSE 1 END
                    WHEN k.lock_id = k.id OR k.dead_id IS NOT NULL OR k.delayed_id IS NOT NULL THEN 0
                    ELSE 3
                END AS what
            FROM (
                SELECT TOP (@chunk) r.id, r.priority, r.run_at, r.attempts, COALESCE(m.group_key, N'') AS group_key,
                    m.id AS message_id, l.id AS lock_id, g.id AS grouped_id, e.id AS dead_id, d.id AS delayed_id
                FROM mq.ready AS r WITH (READPAST, READCOMMITTEDLOCK)
                LEFT JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = r.id
                LEFT JOIN mq.group_lock AS l WITH (READUNCOMMITTED)
                    ON l.type = m.type AND l.group_key = COALESCE(m.group_key, N'')
                LEFT JOIN mq.grouped AS g WITH (READUNCOMMITTED) ON g.id = m.id
                LEFT JOIN mq.dead AS e WITH (READUNCOMMITTED) ON e.id = m.id AND g.id IS NULL
                LEFT JOIN mq.delayed AS d WITH (READUNCOMMITTED)
                    ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id AND g.id IS NULL
                WHERE r.type = @type AND r.priority >= @above
                    AND (r.priority > @above OR r.run_at > @run_at OR (r.run_at = @run_at AND r.id > @id))
                    -- A take leaves the tickets of groups at work to the claims, and must not stumble over them.
                    AND (@take = 0 OR l.id IS NULL)
                ORDER BY r.priority, r.run_at, r.id
            ) AS k
        ) AS t
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SET @read = @@ROWCOUNT;
        IF @read = 0
            BREAK;

        SET @n = 0;
        WHILE @left > 0 AND @n IS NOT NULL
        BEGIN
            SET @n = (
                SELECT MIN(s.n) FROM @seen AS s
                WHERE s.n > @n AND s.what >= 2 AND s.nth = 1
                    AND NOT EXISTS (SELECT * FROM @used AS u WHERE u.group_key = s.group_key)
            );
            IF @n IS NOT NULL
            BEGIN
                SELECT @group_key = group_key, @ticket_priority = priority, @ticket_run_at = run_at FROM @seen WHERE n = @n;
                SELECT @picked = 0, @first = NULL, @before = NULL, @head = NULL;
                SET @resource = CONCAT(N'mq.group:',
                    CAST(SUBSTRING(HASHBYTES('SHA2_256', CONCAT(@type, NCHAR(10), @group_key)), 1, 8) AS bigint));
                EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive',
                    @LockOwner = 'Transaction', @LockTimeout = 0;
                IF @got >= 0 AND NOT EXISTS (
                    SELECT * FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND group_key = @group_key
                )
                BEGIN
                    IF EXISTS (SELECT * FROM @seen WHERE what = 3 AND group_key = @group_key)
                    BEGIN
                        -- Sent by a transaction that began before the queue was made ordered. Who erases one locks it first:
                        -- if we can lock it and it is in no table of its state, it is not on its way out.
                        DELETE FROM @late;
                        INSERT INTO @late (id, attempts)
                        SELECT id, MIN(attempts)
                        FROM @seen
                        WHERE what = 3 AND group_key = @group_key
                        GROUP BY id;
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
                    END;
                    SELECT TOP (1) @first = id
                    FROM mq.grouped WITH (READUNCOMMITTED)
                    WHERE type = @type AND group_key = @group_key
                    ORDER BY id;
                    -- The group of a head that is being cancelled or purged is passed over: it may stay, and comes first. Only
                    -- the old version of its row tells; without row versions this look waits for who cancels, for nobody else.
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
                    IF @head IS NOT NULL AND NOT EXISTS (
                        SELECT * FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND group_key = @group_key
                    )
                    BEGIN
                        -- First this row, by which others see what we have: see issue_tickets. A take needs none, it leaves the
                        -- group free, with a ticket.
                        IF @take = 0
                            INSERT INTO mq.group_lock (type, group_key, id) VALUES (@type, @group_key, @head);
                        DELETE FROM mq.grouped WHERE id = @head;
                        INSERT INTO mq.claimed (batch_key, id, attempt, priority, run_at)
                        VALUES (@batch_key, @head, @attempts + 1, @ticket_priority, @ticket_run_at);
                        INSERT INTO @used (group_key) VALUES (@group_key);
                        INSERT INTO @heads (id, attempts) VALUES (@head, @attempts);
                        SELECT @picked = 1, @count = @count + 1, @left = @left - 1;
                        -- A take drops only the tickets that led it there: the others must not be hidden until it commits.
                        IF @take = 1
                            INSERT INTO @spent (n, priority, run_at, id) SELECT n, priority, run_at, id FROM @seen WHERE n = @n;
                    END;
                END;
                IF @got >= 0 AND @picked = 0
                    EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Transaction';
            END;
        END;

        INSERT INTO @spent (n, priority, run_at, id) SELECT n, priority, run_at, id FROM @seen WHERE what = 0;
        IF @take = 0
        BEGIN
            -- All that were seen of the groups claimed just now, or a long group would be walked each time.
            INSERT INTO @spent (n, priority, run_at, id)
            SELECT s.n, s.priority, s.run_at, s.id
            FROM @seen AS s
            INNER JOIN @used AS u ON u.group_key = s.group_key
            WHERE s.what = 2;
            SELECT @more = COUNT(*) FROM @seen WHERE what = 1 AND nth > 1;
            IF @more > @few
            BEGIN
                INSERT INTO @kept (group_key)
                SELECT s.group_key
                FROM @seen AS s
                INNER JOIN mq.ready AS r WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                    ON r.type = @type AND r.priority = s.priority AND r.run_at = s.run_at AND r.id = s.id
                INNER JOIN mq.grouped AS g WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON g.id = s.id
                WHERE s.what = 1 AND s.nth = 1
                OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                INSERT INTO @spent (n, priority, run_at, id)
                SELECT s.n, s.priority, s.run_at, s.id
                FROM @seen AS s
                INNER JOIN @kept AS k ON k.group_key = s.group_key
                WHERE s.what = 1 AND s.nth > 1;
            END;
        END;
        IF EXISTS (SELECT * FROM @spent)
            DELETE r
            FROM (
                SELECT k.type, k.priority, k.run_at, k.id
                FROM @spent AS s
                INNER JOIN mq.ready AS k WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                    ON k.type = @type AND k.priority = s.priority AND k.run_at = s.run_at AND k.id = s.id
            ) AS f
            INNER JOIN mq.ready AS r WITH (ROWLOCK)
                ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);

        IF @read < @chunk
            BREAK;
        SELECT @above = priority, @run_at = run_at, @id = id FROM @seen WHERE n = @read;
        SET @walked = @walked + @read;
        SET @chunk = 1000;
    END;

    IF @take = 1 AND @count > 0
        EXEC mq.issue_tickets @type, @heads;
END;
GO

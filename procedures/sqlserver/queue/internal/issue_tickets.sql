-- issue_tickets: in a grouped queue, make groups claimable that have something due and may go on.
-- Arguments:   @type, @items (messages of these groups, at most 1,000; they are still there), @hidden (1: messages that another
--              transaction is cancelling count as well; 0: they do not, and the call never waits)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; without row versions it waits for transactions that cancel the first messages of the same group
-- Example:     EXEC mq.issue_tickets N'invoice', @items, 1;
--
-- A message that another transaction is cancelling may be gone or stay: so the first message gets a ticket, the first that nobody
-- has locked, and one that is being deleted before them. One too many does no harm. A ticket at the message's own place is left
-- alone if it can be locked: then no claim is dropping it. A new one stands less than a millisecond after it, at a random time, so that
-- it does not collide with one that another transaction has inserted or deleted.
--
-- A row that is being deleted is seen only through its old version. Under READ_COMMITTED_SNAPSHOT a read without a hint finds it;
-- else it waits, which costs less than a group that stands still. It reads only before the first row that a dirty read finds,
-- so it never waits for a sender. While a claim has the group, its row in mq.group_lock shows what it took, and there is no wait.
--
-- Rows of mq.grouped are locked by id alone: a lock through the other index and a delete would lock in opposite orders.

CREATE OR ALTER PROCEDURE mq.issue_tickets
    @type nvarchar(400),
    @items mq.items READONLY,
    @hidden bit
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @n int = 0, @group_key nvarchar(400), @resource nvarchar(255);
    DECLARE @look bigint, @first bigint, @gone bigint, @free bigint;
    DECLARE @last bigint = 9223372036854775807;
    DECLARE @id bigint, @priority smallint, @run_at datetime2(7), @attempts smallint, @there bigint;
    DECLARE @groups TABLE (n int NOT NULL PRIMARY KEY, group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL);
    DECLARE @wanted TABLE (id bigint NOT NULL PRIMARY KEY);
    INSERT INTO @groups (n, group_key)
    SELECT ROW_NUMBER() OVER (ORDER BY k.group_key), k.group_key
    FROM (
        SELECT DISTINCT COALESCE(m.group_key, N'') AS group_key
        FROM @items AS i
        INNER JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = i.id
    ) AS k
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);

    WHILE @n IS NOT NULL
    BEGIN
        SET @n = (SELECT MIN(n) FROM @groups WHERE n > @n);
        IF @n IS NOT NULL
        BEGIN
            SELECT @group_key = group_key FROM @groups WHERE n = @n;
            SET @resource = mq.lock_name('group', @type, @group_key);
            DELETE FROM @wanted;
            SELECT @first = NULL, @gone = NULL, @free = NULL;
            SELECT TOP (1) @first = id
            FROM mq.grouped WITH (READUNCOMMITTED)
            WHERE type = @type AND group_key = @group_key
            ORDER BY id;
            IF @hidden = 1 AND APPLOCK_TEST('public', @resource, 'Exclusive', 'Transaction') = 1
                SELECT TOP (1) @gone = id
                FROM mq.grouped
                WHERE type = @type AND group_key = @group_key AND id < COALESCE(@first, @last)
                ORDER BY id;
            ELSE IF @hidden = 1
                SELECT @gone = id
                FROM mq.group_lock WITH (READUNCOMMITTED)
                WHERE type = @type AND group_key = @group_key AND blocks = 1;
            SET @look = @first;
            WHILE @look IS NOT NULL AND @free IS NULL
            BEGIN
                SELECT @free = id FROM mq.grouped WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE id = @look;
                IF @free IS NULL
                    SET @look = (
                        SELECT MIN(id) FROM mq.grouped WITH (READUNCOMMITTED)
                        WHERE type = @type AND group_key = @group_key AND id > @look
                    );
            END;
            INSERT INTO @wanted (id)
            SELECT id FROM (VALUES (@first), (@gone), (@free)) AS w (id) WHERE id IS NOT NULL GROUP BY id;

            SET @id = -9223372036854775808;
            WHILE @id IS NOT NULL
            BEGIN
                SET @id = (SELECT MIN(id) FROM @wanted WHERE id > @id);
                IF @id IS NOT NULL
                BEGIN
                    SELECT @run_at = NULL, @there = NULL, @attempts = 0;
                    SELECT @priority = priority, @run_at = run_at FROM mq.message WITH (READUNCOMMITTED) WHERE id = @id;
                    IF @run_at IS NULL AND @id = @gone
                        SELECT @priority = priority, @run_at = run_at FROM mq.message WHERE id = @id;
                    IF @run_at IS NOT NULL
                    BEGIN
                        SELECT @there = id
                        FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                        WHERE type = @type AND priority = @priority AND run_at = @run_at AND id = @id;
                        IF @there IS NULL
                        BEGIN
                            SELECT @attempts = attempts FROM mq.grouped WITH (READUNCOMMITTED) WHERE id = @id;
                            -- At least a microsecond, at most a millisecond, in the steps of this type of time.
                            SET @run_at = DATEADD(NANOSECOND, 1000 + 100 * ABS(CHECKSUM(NEWID()) % 9990), @run_at);
                            INSERT INTO mq.ready (type, priority, run_at, id, attempts)
                            SELECT @type, @priority, @run_at, @id, @attempts
                            WHERE NOT EXISTS (
                                SELECT * FROM mq.ready AS r WITH (READUNCOMMITTED)
                                WHERE r.type = @type AND r.priority = @priority AND r.run_at = @run_at AND r.id = @id
                            );
                        END;
                    END;
                END;
            END;
        END;
    END;
END;
GO

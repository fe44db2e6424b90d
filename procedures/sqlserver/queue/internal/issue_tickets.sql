-- issue_tickets: write tickets for groups of a grouped queue that have due messages and are not blocked.
-- Arguments: @type, @items (at most 1,000 messages of these groups, which still exist), @hidden (1: messages that
--     another transaction is cancelling also count; 0: they do not, and the call never waits)
-- Transaction: without row versions it waits for transactions that cancel the first messages of the same group
--
-- The first message of a group may be one that another transaction is cancelling. So three messages get a ticket: the
-- first message, the first one that no session has locked, and one before them that is being deleted. An extra ticket
-- does no harm. A ticket at the message's own position is left alone if this call can lock it: then no claim is
-- dropping it. A new ticket has a run_at up to 1 ms after the message's, at a random time: it does not collide with a
-- ticket that another transaction has inserted or deleted.
--
-- Only its old version shows a row that is being deleted. Under READ_COMMITTED_SNAPSHOT a read without a hint returns
-- it. Otherwise the read waits, which is better than a group that gets stuck. It reads only rows before the first row
-- of a dirty read, so it never waits for a sender. While a claim holds the group, its row in mq.group_lock shows what
-- it took, and this call does not wait.
--
-- Rows of mq.grouped are locked by id only: a lock through the other index and a delete would lock in opposite order.
CREATE OR ALTER PROCEDURE mq_internal.issue_tickets
    @type nvarchar(400), @items mq.items READONLY, @hidden bit
AS
BEGIN
    DECLARE @n int = 0, @group_key nvarchar(400), @resource nvarchar(255);
    DECLARE @look bigint, @first bigint, @gone bigint, @free bigint;
    DECLARE @last bigint = 9223372036854775807;
    DECLARE @id bigint, @priority smallint, @lane nvarchar(37), @run_at datetime2(7), @attempts smallint, @there bigint, @fair bit;
    DECLARE @groups TABLE (n int NOT NULL PRIMARY KEY, group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL);
    DECLARE @wanted TABLE (id bigint NOT NULL PRIMARY KEY);
    SELECT @fair = fair FROM mq_internal.policy(@type);
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
            SET @resource = mq_internal.lock_name('group', @type, @group_key);
            SELECT @lane = lane FROM mq_internal.place(0, @fair, 1, 0, @group_key, NULL);
            DELETE FROM @wanted;
            SELECT @first = NULL, @gone = NULL, @free = NULL;
            SELECT TOP (1) @first = id
            FROM mq.grouped WITH (READUNCOMMITTED)
            WHERE type = @type AND group_key = @group_key
            ORDER BY id;
            IF @hidden = 1 AND APPLOCK_TEST('public', @resource, 'Exclusive', 'Transaction') = 1
                SELECT TOP (1) @gone = id
                FROM mq.grouped WITH (ROWLOCK, FORCESEEK, INDEX (grouped_order))
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
                        WHERE type = @type AND priority = @priority AND lane = @lane AND run_at = @run_at AND id = @id;
                        IF @there IS NULL
                        BEGIN
                            SELECT @attempts = attempts FROM mq.grouped WITH (READUNCOMMITTED) WHERE id = @id;
                            -- 1 microsecond to 1 millisecond, in steps of 100 nanoseconds.
                            SET @run_at = DATEADD(NANOSECOND, 1000 + 100 * ABS(CHECKSUM(NEWID()) % 9990), @run_at);
                            INSERT INTO mq.ready (type, priority, lane, run_at, id, attempts)
                            SELECT @type, @priority, @lane, @run_at, @id, @attempts
                            WHERE NOT EXISTS (
                                SELECT * FROM mq.ready AS r WITH (READUNCOMMITTED)
                                WHERE r.type = @type AND r.priority = @priority AND r.lane = @lane AND r.run_at = @run_at AND r.id = @id
                            );
                        END;
                    END;
                END;
            END;
        END;
    END;
END;

-- join_group: add messages to their group that a transaction sent before it could see that the queue is grouped.
-- Arguments:   @late (messages that have a ticket and are not in a group yet)
-- Transaction: joins the caller's, which is READ COMMITTED and holds the group's application lock
--
-- A call that erases a message locks it first. If this call can lock the message and no state table has it, the message is
-- not being erased.

CREATE OR ALTER PROCEDURE mq_internal.join_group
    @late mq.items READONLY
AS
BEGIN
    INSERT INTO mq.grouped (type, group_key, id, attempts)
    SELECT m.type, COALESCE(m.group_key, N''), m.id, i.attempts
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
END;
GO

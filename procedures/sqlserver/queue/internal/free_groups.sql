-- free_groups: unblock the groups that these messages block.
-- Arguments: @type, @items (at most 1,000 messages that are finished, dead or erased; their rows in mq.message still
--     exist)
-- Transaction: waits for a claim only while that claim checks the group
--
-- Without row versions, no session sees a row of mq.group_lock that another transaction is deleting: a claim would take
-- the group although this transaction may roll back. So a call that unblocks a group holds its application lock until
-- it commits. A claim that finds the group blocked releases the lock at once and waits for nothing before that, so the
-- wait cannot deadlock. A claim that takes the group keeps the lock, but then there is nothing to unblock.
CREATE OR ALTER PROCEDURE mq_internal.free_groups
    @type nvarchar(400), @items mq.items READONLY
AS
BEGIN
    DECLARE @id bigint = -9223372036854775808, @group_key nvarchar(400);
    DECLARE @heads mq.items;
    -- Read without a lock: only this session deletes these rows.
    INSERT INTO @heads (id, attempts)
    SELECT i.id, i.attempts
    FROM @items AS i
    INNER JOIN mq.group_lock AS l WITH (READUNCOMMITTED) ON l.id = i.id AND l.blocks = 1
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    IF NOT EXISTS (SELECT * FROM @heads)
        RETURN;
    WHILE @id IS NOT NULL
    BEGIN
        SET @id = (SELECT MIN(id) FROM @heads WHERE id > @id);
        IF @id IS NOT NULL
        BEGIN
            SET @group_key = NULL;
            SELECT @group_key = group_key FROM mq.group_lock WITH (READUNCOMMITTED) WHERE id = @id;
            IF @group_key IS NOT NULL
                EXEC mq_internal.wait_for_lock 'group', @type, @group_key;
        END;
    END;
    DELETE l
    FROM @heads AS h
    INNER JOIN mq.group_lock AS l WITH (ROWLOCK) ON l.id = h.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    EXEC mq_internal.issue_tickets @type, @heads, 1;
END;

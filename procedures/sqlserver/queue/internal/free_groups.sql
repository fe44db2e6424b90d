-- free_groups: let the groups go on that wait for these messages.
-- Arguments:   @type, @items (at most 1,000, which are finished, dead or erased; the messages are still there)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; waits for a claim only while that checks the group
-- Example:     EXEC mq.free_groups N'invoice', @items;
--
-- Without row versions nobody sees a row of mq.group_lock that another transaction is deleting: a claim would take the group,
-- and we may still roll back. So a call that frees a group holds its application lock until the commit. A claim that finds the group
-- at work releases that lock at once and waits for nothing before, so the wait ends in no deadlock. A claim that takes the group keeps
-- the lock, but then there is nothing to free.

CREATE OR ALTER PROCEDURE mq.free_groups
    @type nvarchar(400),
    @items mq.items READONLY
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @id bigint = -9223372036854775808, @resource nvarchar(255);
    DECLARE @heads mq.items;
    -- Without a lock: only rows of our own are deleted below, and nobody else changes those.
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
            SET @resource = NULL;
            SELECT @resource = mq.lock_name('group', @type, group_key)
            FROM mq.group_lock WITH (READUNCOMMITTED)
            WHERE id = @id;
            -- If it should ever fail, the unique index of mq.group_lock still lets no two claims into one group.
            IF @resource IS NOT NULL
                EXEC sp_getapplock @Resource = @resource, @LockMode = 'Exclusive',
                    @LockOwner = 'Transaction', @LockTimeout = -1;
        END;
    END;
    DELETE l
    FROM @heads AS h
    INNER JOIN mq.group_lock AS l WITH (ROWLOCK) ON l.id = h.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    EXEC mq.issue_tickets @type, @heads, 1;
END;
GO

-- cancel_one: delete a message that is new or dead, mark one that is active; @state: the one it had, or that prevents it.
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for a claim; waits for an open step and for a call
--     that is changing the message or ending its attempt
--
-- A call that ends the attempt locks the message too, see drop_cancelled: it sees the mark, or this call sees the state that
-- it leaves. The row of the batch is not locked, because heartbeats would wait. A claim does not lock the message, so only
-- a row of mq.claimed that is committed and not locked proves that the message is active. After a rollback of any other
-- one it would be new with a mark.
CREATE OR ALTER PROCEDURE mq_internal.cancel_one
    @id bigint, @count bigint OUTPUT, @state char(1) OUTPUT
AS
BEGIN
    DECLARE @type nvarchar(400), @held bigint;
    DECLARE @items mq.items;
    SELECT @count = 0, @state = 'N';
    -- One that an open transaction has deleted is not waited for: it may have been taken.
    IF EXISTS (SELECT * FROM mq.message WITH (READUNCOMMITTED) WHERE id = @id)
        SELECT @type = type FROM mq.message WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE id = @id;
    IF @type IS NOT NULL
    BEGIN
        INSERT INTO @items (id, attempts) VALUES (@id, 0);
        -- One after the other: so the state is the one from which it was deleted.
        EXEC mq_internal.erase @type, @items, 'N', @count OUTPUT;
        IF @count = 0
        BEGIN
            SET @state = 'E';
            EXEC mq_internal.erase @type, @items, 'E', @count OUTPUT;
        END;
        IF @count = 0
            SELECT TOP (1) @held = c.id
            FROM mq.batch AS b WITH (READUNCOMMITTED)
            INNER JOIN mq.claimed AS c WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON c.batch_key = b.batch_key AND c.id = @id
            WHERE b.type = @type
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF @held IS NOT NULL
        BEGIN
            SELECT @count = 1, @state = 'A';
            UPDATE mq.message SET cancelled_at = SYSUTCDATETIME() WHERE id = @id AND cancelled_at IS NULL;
        END;
    END;
    -- For this call only: this read must not wait for a claim.
    SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    -- A dirty read shows a claim, or the end of one, that is under way: the message is being changed.
    IF @count = 0
        SET @state = REPLACE(mq_internal.state_of(@id), 'A', 'N');
END;

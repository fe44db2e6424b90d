-- cancel_one: delete a message that is new or dead; @state: the one it had, or the one that prevents it.
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for a claim
CREATE OR ALTER PROCEDURE mq_internal.cancel_one
    @id bigint, @count bigint OUTPUT, @state char(1) OUTPUT
AS
BEGIN
    DECLARE @type nvarchar(400);
    DECLARE @items mq.items;
    SELECT @count = 0, @state = 'N';
    SELECT @type = type FROM mq.message WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE id = @id;
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
    END;
    -- For this call only: this read must not wait for a claim.
    SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    IF @count = 0
        SET @state = mq_internal.state_of(@id);
END;

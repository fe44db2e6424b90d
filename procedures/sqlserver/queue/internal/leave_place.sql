-- leave_place: remove a message of state N from mq.ready or mq.delayed.
-- Arguments:   @type, @id, @priority and @run_at (the message's own), @grouped (the policy)
-- Returns:     @attempts (so far; NULL: another transaction is claiming the message)
-- Transaction: joins the caller's, which is READ COMMITTED; never waits

CREATE OR ALTER PROCEDURE mq_internal.leave_place
    @type nvarchar(400),
    @id bigint,
    @priority smallint,
    @run_at datetime2(7),
    @grouped bit,
    @attempts smallint OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @places mq.places;
    SET @attempts = NULL;
    -- The delayed table first: a claim may be promoting the message.
    SELECT @attempts = attempts
    FROM mq.delayed WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE type = @type AND run_at = @run_at AND id = @id;
    IF @attempts IS NOT NULL
        DELETE FROM mq.delayed WHERE type = @type AND run_at = @run_at AND id = @id;
    ELSE IF @grouped = 1
    BEGIN
        SELECT @attempts = attempts FROM mq.grouped WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE id = @id;
        IF @attempts IS NULL
            RETURN;
        DELETE FROM mq.grouped WHERE id = @id;
        INSERT INTO @places (priority, run_at, id) VALUES (@priority, @run_at, @id);
        EXEC mq_internal.drop_tickets @type, @places;
    END
    ELSE
    BEGIN
        SELECT @attempts = attempts
        FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND priority = @priority AND run_at = @run_at AND id = @id;
        IF @attempts IS NULL
        BEGIN
            -- The position of all messages of a ring, and of messages whose sender saw a ring that was rolled back.
            SELECT @priority = -32768, @run_at = '0001-01-01';
            SELECT @attempts = attempts
            FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority = @priority AND run_at = @run_at AND id = @id;
        END;
        IF @attempts IS NOT NULL
            DELETE FROM mq.ready WHERE type = @type AND priority = @priority AND run_at = @run_at AND id = @id;
    END;
END;
GO

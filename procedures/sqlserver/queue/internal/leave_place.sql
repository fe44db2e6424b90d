-- leave_place: remove a message of state N from mq.ready or mq.delayed.
-- Arguments: @type, @id, @priority, @group_key and @run_at (the message's own), @grouped (the policy)
-- Returns: @attempts (so far; NULL: another transaction is claiming the message)
CREATE OR ALTER PROCEDURE mq_internal.leave_place
    @type nvarchar(400), @id bigint, @priority smallint, @group_key nvarchar(400), @run_at datetime2(7), @grouped bit,
    @attempts smallint OUTPUT
AS
BEGIN
    DECLARE @places mq.places;
    DECLARE @out TABLE (id bigint NOT NULL, attempts smallint NOT NULL);
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
        INSERT INTO @places (priority, lane, run_at, id)
        SELECT priority, lane, run_at, @id FROM mq_internal.places(@priority, @group_key, @run_at);
        EXEC mq_internal.drop_tickets @type, @places;
    END
    ELSE
    BEGIN
        DELETE r
        OUTPUT deleted.id, deleted.attempts INTO @out (id, attempts)
        FROM mq_internal.places(@priority, @group_key, @run_at) AS p
        INNER JOIN mq.ready AS r WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            ON r.type = @type AND r.priority = p.priority AND r.lane = p.lane AND r.run_at = p.run_at AND r.id = @id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SELECT @attempts = MAX(attempts) FROM @out;
    END;
END;

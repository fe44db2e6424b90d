-- erase: delete messages that no consumer holds.
-- Arguments: @type, @items (messages of that type, at most 1,000; attempts are ignored), @states (to delete from: N, E
--     or NE; or A: the caller has ended the attempt of each)
-- Returns: @count: the number of deleted messages; messages that are held or are being claimed at this moment stay
CREATE OR ALTER PROCEDURE mq_internal.erase
    @type nvarchar(400), @items mq.items READONLY, @states varchar(2), @count bigint OUTPUT
AS
BEGIN
    DECLARE @grouped bit;
    DECLARE @gone mq.items, @from_groups mq.items;
    DECLARE @out TABLE (id bigint NOT NULL, attempts smallint NOT NULL);
    DECLARE @place TABLE (
        id bigint NOT NULL PRIMARY KEY, priority smallint NOT NULL, run_at datetime2(7) NOT NULL,
        group_key nvarchar(400) COLLATE Latin1_General_100_BIN2
    );
    DECLARE @places mq.places;
    SELECT @grouped = grouped FROM mq_internal.policy(@type);
    -- Lock the messages before deleting any of their rows: a claim that no longer finds one in mq.grouped then knows that
    -- it was not sent late.
    INSERT INTO @place (id, priority, run_at, group_key)
    SELECT m.id, m.priority, m.run_at, m.group_key
    FROM @items AS i
    INNER JOIN mq.message AS m WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = i.id
    WHERE m.type = @type
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);

    IF @states LIKE '%N%'
    BEGIN
        -- The delayed table first, because a claim may be promoting messages from it.
        DELETE d
        OUTPUT deleted.id, deleted.attempts INTO @out (id, attempts)
        FROM @place AS p
        INNER JOIN mq.delayed AS d WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            ON d.type = @type AND d.run_at = p.run_at AND d.id = p.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF @grouped = 1
        BEGIN
            DELETE g
            OUTPUT deleted.id, deleted.attempts INTO @from_groups (id, attempts)
            FROM @place AS p
            INNER JOIN mq.grouped AS g WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON g.id = p.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            INSERT INTO @out (id, attempts) SELECT id, attempts FROM @from_groups;
            -- Only the tickets of messages that are already deleted.
            INSERT INTO @places (priority, lane, run_at, id)
            SELECT k.priority, k.lane, k.run_at, p.id
            FROM @from_groups AS g
            INNER JOIN @place AS p ON p.id = g.id
            CROSS APPLY mq_internal.places(p.priority, p.group_key, p.run_at) AS k;
            EXEC mq_internal.drop_tickets @type, @places;
        END
        ELSE
            DELETE r
            OUTPUT deleted.id, deleted.attempts INTO @out (id, attempts)
            FROM @place AS p
            CROSS APPLY mq_internal.places(p.priority, p.group_key, p.run_at) AS w
            INNER JOIN mq.ready AS r WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                ON r.type = @type AND r.priority = w.priority AND r.lane = w.lane AND r.run_at = w.run_at AND r.id = p.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    END;
    IF @states LIKE '%E%'
    BEGIN
        DELETE e
        OUTPUT deleted.id, deleted.attempts INTO @out (id, attempts)
        FROM @place AS p
        INNER JOIN mq.dead AS e WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON e.id = p.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        -- Before the lock on the dead letters, set_queue may have let them stop their groups.
        SELECT @grouped = grouped FROM mq_internal.policy(@type);
    END;

    IF @states = 'A'
        INSERT INTO @out (id, attempts) SELECT id, attempts FROM @items;
    -- A ticket of a message may remain from the time when the queue was ordered.
    INSERT INTO @gone (id, attempts) SELECT id, MAX(attempts) FROM @out GROUP BY id;
    SET @count = @@ROWCOUNT;
    IF @count > 0
    BEGIN
        IF @grouped = 1
        BEGIN
            -- The deleted message may have been a group's first message in a retry delay, a dead letter that stopped its
            -- group, or the one with its group's ticket.
            EXEC mq_internal.free_groups @type, @gone;
            EXEC mq_internal.issue_tickets @type, @gone, 1;
        END;
        EXEC mq_internal.forget_results @gone;
        EXEC mq_internal.delete_messages @gone;
        EXEC mq_internal.forget_steps @gone;
    END;
END;

-- rescue: rescue up to @batches expired claims of a type: make their messages ready again, or dead-letter them when
--     their attempts are used up.
-- Arguments: @type, @batches (maximum number of claims)
-- Returns: @count: how many messages were made ready or dead-lettered
CREATE OR ALTER PROCEDURE mq_internal.rescue
    @type nvarchar(400), @batches int, @count bigint OUTPUT
AS
BEGIN
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @max_attempts int, @key uniqueidentifier, @consumer nvarchar(400), @counted bit, @in_groups bit, @held bit;
    DECLARE @step int = 1000, @took int, @dead bigint, @back bigint, @n int = 0, @last int;
    DECLARE @spent mq.failures;
    DECLARE @expired TABLE (n int NOT NULL PRIMARY KEY, batch_key uniqueidentifier NOT NULL);
    SELECT @max_attempts = max_attempts FROM mq_internal.policy(@type);
    SET @count = 0;
    -- Read the keys without locks, then lock each row by its primary key: a lock through the other index would block calls
    -- that finish or extend the claim.
    INSERT INTO @expired (n, batch_key)
    SELECT ROW_NUMBER() OVER (ORDER BY b.lease_until, b.batch_key), b.batch_key
    FROM (
        SELECT TOP (@batches + 1000) batch_key, lease_until
        FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND lease_until <= @now
        ORDER BY lease_until
    ) AS b;
    SET @last = @@ROWCOUNT;
    WHILE @n < @last AND @batches > 0 -- one that is held does not count
    BEGIN
        SET @n = @n + 1;
        SET @key = NULL;
        SELECT @key = b.batch_key, @consumer = b.consumer, @counted = b.counted, @in_groups = b.in_groups
        FROM @expired AS e
        INNER JOIN mq.batch AS b WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON b.batch_key = e.batch_key
        WHERE e.n = @n AND b.lease_until <= @now
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF @key IS NULL
            CONTINUE;
        -- A handler's open transaction that has saved a step locks its message.
        EXEC mq_internal.is_held @key, @held OUTPUT;
        IF @held = 1
            CONTINUE;
        SET @batches = @batches - 1;
        DELETE FROM mq.batch WHERE batch_key = @key;
        IF @counted = 1 OR @in_groups = 1
            EXEC mq_internal.free_places @type, @key, NULL, @counted, @in_groups;
        SET @took = 1;
        WHILE @took > 0
        BEGIN
            DELETE FROM @spent;
            DELETE TOP (@step) c
            OUTPUT deleted.id, deleted.attempt, -1, N'lease expired: the consumer died or was too slow'
            INTO @spent (id, attempts, retry, error)
            FROM mq.claimed AS c WITH (ROWLOCK)
            INNER JOIN mq.message AS m ON m.id = c.id
            WHERE c.batch_key = @key AND c.attempt >= COALESCE(m.max_attempts, @max_attempts)
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SET @took = @@ROWCOUNT;
            IF @took > 0
            BEGIN
                EXEC mq_internal.fail_messages @type, @consumer, @spent, @dead OUTPUT;
                SET @count = @count + @took;
            END;
        END;
        EXEC mq_internal.put_back @key, @type, 0, @back OUTPUT;
        SET @count = @count + @back;
    END;
END;

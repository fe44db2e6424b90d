-- pick_fair: take messages of a fair queue: the groups of a priority take turns, from the lane on where the last claim
--     stopped.
-- Arguments: @type, @size, @batch_key
-- Returns: @count: how many rows of mq.claimed now have @batch_key, with their order in priority and run_at
--
-- A lane (see place) gets one message per turn, or the weight of its group. Claims at the same time start at the same
-- position, so each locks the lanes that it serves: sp_getapplock with a timeout of 0. A row lock would not do, because
-- a row that another claim is deleting is not visible. A claim passes over lanes that others have locked. Only when a
-- whole round found too few messages does it take what is not locked from these lanes too: so many claims can share one
-- group.
--
-- When a lane is locked, the claim that served it may just have committed. So the position is read again after the
-- lanes are locked, and lanes up to it are given back: their group has had its turn.
CREATE OR ALTER PROCEDURE mq_internal.pick_fair
    @type nvarchar(400), @size int, @batch_key uniqueidentifier, @count int OUTPUT
AS
BEGIN
    -- Messages per round of the loop: far below 5,000 locks per statement, where the server escalates to a table lock.
    DECLARE @step int = 1000;
    -- The most lanes of others to pass over.
    DECLARE @most int = 1000;
    DECLARE @start datetime2(7) = '1900-01-01', @priority int = -32768, @next int, @consumer nvarchar(400), @left int, @wanted int, @passed int;
    DECLARE @n bigint, @after nvarchar(37), @taken int, @new_n bigint, @new_after nvarchar(37), @new_taken int, @took int, @each bigint, @i int, @want int, @weight int;
    DECLARE @from nvarchar(37), @lane nvarchar(37), @next_lane nvarchar(37), @round bigint, @again bit, @wrapped bit, @whole bit, @first bit, @resource nvarchar(255), @got int;
    -- All turns of this call, to order the batch, and those of this part.
    DECLARE @turns bigint = 0, @extra bigint, @weights bit = 0;
    -- want: messages to take now; done: of the same turn, by the claim before; mine: this claim has locked the lane.
    DECLARE @turn TABLE (
        n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL, round bigint NOT NULL, weight int NOT NULL, want int NOT NULL,
        done int NOT NULL, mine bit NOT NULL
    );
    DECLARE @out TABLE (id bigint NOT NULL PRIMARY KEY, attempts smallint NOT NULL, lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL);
    SET @count = 0;
    IF EXISTS (SELECT * FROM mq.queue_group WITH (READCOMMITTED, FORCESEEK, INDEX (queue_group_lane)) WHERE type = @type AND weight > 1)
        SET @weights = 1;
    WHILE @count < @size
    BEGIN
        SET @next = NULL;
        SELECT TOP (1) @next = priority
        FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND priority >= @priority
        ORDER BY priority;
        IF @next IS NULL
            BREAK;
        SELECT @priority = @next, @consumer = CONCAT(N'', @next), @left = CASE WHEN @size - @count < @step THEN @size - @count ELSE @step END,
            @n = NULL, @after = NULL, @taken = 0;
        SELECT TOP (1) @n = n, @after = lane, @taken = taken
        FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
        WHERE type = @type AND consumer = @consumer
        ORDER BY n DESC, after_id DESC, lane DESC, taken DESC;
        DELETE FROM @turn;
        -- A turn that the last claim did not finish continues in its lane.
        SELECT @from = COALESCE(@after, N'-'), @again = @weights, @round = COALESCE(@n, 0), @wrapped = 0,
            @whole = 0, @passed = 0, @wanted = 0;
        SET @lane = @from;

        WHILE @wanted < @left AND @whole = 0
        BEGIN
            SET @next_lane = NULL;
            IF @again = 1
                SELECT TOP (1) @next_lane = lane
                FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority = @priority AND lane = @lane
                ORDER BY priority, lane;
            IF @next_lane IS NULL
                SELECT TOP (1) @next_lane = lane
                FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority = @priority AND lane > @lane
                ORDER BY priority, lane;
            SET @again = 0;
            IF @next_lane IS NULL AND @wrapped = 0
                -- The lane - has the messages of senders that did not see yet that the queue is fair.
                SELECT @wrapped = 1, @lane = N'', @round = @round + 1;
            ELSE IF @next_lane IS NULL OR @passed = @most OR (@wrapped = 1 AND @next_lane > @from COLLATE Latin1_General_100_BIN2)
                OR EXISTS (SELECT * FROM @turn WHERE lane = @next_lane)
                SET @whole = 1;
            ELSE
            BEGIN
                SELECT @lane = @next_lane, @weight = 1, @i = 0;
                SET @resource = mq_internal.lock_name('lane', @type, CONCAT(@priority, N':', @lane));
                IF @weights = 1
                    SELECT @weight = COALESCE(MAX(weight), 1)
                    FROM mq.queue_group WITH (READCOMMITTED, FORCESEEK, INDEX (queue_group_lane))
                    WHERE type = @type AND lane = @lane AND weight > 1;
                IF @lane = @after COLLATE Latin1_General_100_BIN2 AND @wrapped = 0
                    SET @i = @taken;
                IF @i >= @weight
                    CONTINUE;
                SET @want = CASE WHEN @weight - @i < @left - @wanted THEN @weight - @i ELSE @left - @wanted END;
                EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = 0;
                IF @got < 0
                    SELECT @want = 0, @passed = @passed + 1;
                INSERT INTO @turn (lane, round, weight, want, done, mine)
                VALUES (@lane, @round, @weight, @want, @i, CASE WHEN @got < 0 THEN 0 ELSE 1 END);
                SET @wanted = @wanted + @want;
            END;
            IF @wanted < @left AND @whole = 0
                CONTINUE;

            -- Give back the lanes that others have served meanwhile, and lock others instead.
            SELECT @new_n = NULL, @i = 0;
            SELECT TOP (1) @new_n = n, @new_after = lane, @new_taken = taken
            FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
            WHERE type = @type AND consumer = @consumer
            ORDER BY n DESC, after_id DESC, lane DESC, taken DESC;
            IF @new_n > COALESCE(@n, -1) OR (@new_n = @n AND @new_after > @after COLLATE Latin1_General_100_BIN2)
            BEGIN
                WHILE @i IS NOT NULL
                BEGIN
                    SELECT @i = MIN(n)
                    FROM @turn
                    WHERE n > @i AND mine = 1 AND (round < @new_n OR (round = @new_n AND lane <= @new_after));
                    IF @i IS NOT NULL
                    BEGIN
                        SELECT @resource = mq_internal.lock_name('lane', @type, CONCAT(@priority, N':', lane)) FROM @turn WHERE n = @i;
                        EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Transaction';
                        UPDATE @turn SET mine = 0, want = 0 WHERE n = @i;
                    END;
                END;
                SELECT @n = @new_n, @after = @new_after, @taken = @new_taken, @wanted = COALESCE(SUM(want), 0) FROM @turn;
            END;
        END;

        -- The first turn is that of the lanes locked by this claim, the later ones are those of all that have messages left.
        SELECT @first = 1, @extra = 0, @each = 1, @lane = NULL;
        WHILE @left > 0 AND (@first = 1 OR @took > 0)
        BEGIN
            DELETE FROM @out;
            DELETE r
            OUTPUT deleted.id, deleted.attempts, deleted.lane INTO @out (id, attempts, lane)
            FROM (
                SELECT k.type, k.priority, k.lane, k.run_at, k.id
                FROM @turn AS t
                CROSS APPLY (
                    SELECT TOP (t.want) type, priority, lane, run_at, id
                    FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE type = @type AND priority = @priority AND lane = t.lane
                    ORDER BY priority, lane, run_at, id
                ) AS k
                WHERE t.want > 0
            ) AS f
            INNER JOIN mq.ready AS r WITH (ROWLOCK)
                ON r.type = f.type AND r.priority = f.priority AND r.lane = f.lane AND r.run_at = f.run_at AND r.id = f.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SELECT @took = @@ROWCOUNT, @i = NULL;
            -- The batch is returned in this order: turn by turn, and lane by lane.
            INSERT INTO mq.claimed (batch_key, id, attempt, priority, run_at)
            SELECT @batch_key, o.id, o.attempts + 1, @priority,
                DATEADD(MICROSECOND, t.n, DATEADD(SECOND, CAST(@turns + (o.nth - 1) / t.weight AS int), @start))
            FROM (SELECT id, attempts, lane, ROW_NUMBER() OVER (PARTITION BY lane ORDER BY id) AS nth FROM @out) AS o
            INNER JOIN @turn AS t ON t.lane = o.lane;
            SELECT @left = @left - @took, @count = @count + @took;
            IF @took > 0
                SELECT TOP (1) @lane = lane, @new_n = round + @extra, @new_taken = 1 + (done + want - 1) % weight
                FROM @turn
                WHERE want > 0
                ORDER BY n DESC;
            IF @first = 1 AND @whole = 1
                SET @took = 1; -- perhaps this claim has locked no lane
            SELECT @first = 0, @turns = @turns + CASE WHEN @each > 1 THEN @each ELSE 1 END;
            IF @whole = 0 OR @left = 0
                BREAK;
            DELETE t
            FROM @turn AS t
            WHERE NOT EXISTS (
                SELECT * FROM mq.ready AS r WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE r.type = @type AND r.priority = @priority AND r.lane = t.lane
            );
            SELECT @each = COALESCE(@left / NULLIF(SUM(weight), 0), 0) FROM @turn;
            -- As many whole turns as fit at once; else one, to the end of the batch.
            UPDATE t
            SET done = 0, want = CASE
                    WHEN @each > 0 THEN @each * u.weight
                    WHEN u.upto <= @left THEN u.weight
                    WHEN u.upto - u.weight < @left THEN @left - (u.upto - u.weight)
                    ELSE 0
                END
            FROM @turn AS t
            INNER JOIN (SELECT n, weight, SUM(weight) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS upto FROM @turn) AS u ON u.n = t.n;
            SELECT @extra = @extra + CASE WHEN @each > 0 THEN @each ELSE 1 END;
        END;
        IF @lane IS NOT NULL
            EXEC mq_internal.save_position @type, @consumer, @new_n, 0, @lane, @new_taken, @n, 0, @after;
        IF @lane IS NULL OR (@left > 0 AND @whole = 1)
            SET @priority = @priority + 1;
    END;
END;

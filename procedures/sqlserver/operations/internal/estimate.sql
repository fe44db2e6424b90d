-- estimate: estimate how many messages of a type one of the queue's tables holds, from a sample.
-- Arguments: @table (ready, grouped, due or delayed: the two parts of mq.delayed, or dead), @type, @now
-- Returns: the estimate, at least 10,001
-- Transaction: reads only: the first and last index entries, and 400 messages by their id
--
-- It searches the messages with 400 ids, spread from the lowest to the highest id that it finds at both ends of the
-- index. The share of ids found gives the number. Dead letters have few of the ids, so they are sampled by their own
-- numbers. The server's statistics are not used: queues change faster.
CREATE OR ALTER FUNCTION mq_internal.estimate (@table varchar(10), @type nvarchar(400), @now datetime2(7))
RETURNS bigint
AS
BEGIN
    DECLARE @ends int = 100, @priorities int = 16, @priority int = -32769, @next int;
    DECLARE @low bigint = 9223372036854775807, @high bigint = 0, @from bigint, @to bigint, @found bigint, @claimed bigint = 0;
    DECLARE @sample TABLE (id bigint NOT NULL PRIMARY KEY);
    IF @table = 'ready'
    BEGIN
        -- Each priority has its own order of ids.
        WHILE @priorities > 0
        BEGIN
            SELECT @priorities = @priorities - 1, @next = NULL;
            SELECT TOP (1) @next = priority FROM mq.ready WHERE type = @type AND priority > @priority ORDER BY priority;
            IF @next IS NULL
                BREAK;
            SET @priority = @next;
            SELECT @from = MIN(e.id), @to = MAX(e.id)
            FROM (
                SELECT a.id FROM (SELECT TOP (@ends) id FROM mq.ready WHERE type = @type AND priority = @priority ORDER BY lane, run_at, id) AS a
                UNION ALL
                SELECT b.id FROM (SELECT TOP (@ends) id FROM mq.ready WHERE type = @type AND priority = @priority ORDER BY lane DESC, run_at DESC, id DESC) AS b
            ) AS e;
            SELECT @low = CASE WHEN @from < @low THEN @from ELSE @low END, @high = CASE WHEN @to > @high THEN @to ELSE @high END;
        END;
    END;
    ELSE IF @table = 'grouped'
        SELECT @low = MIN(e.id), @high = MAX(e.id)
        FROM (
            SELECT a.id FROM (SELECT TOP (@ends) id FROM mq.grouped WHERE type = @type ORDER BY group_key, id) AS a
            UNION ALL
            SELECT b.id FROM (SELECT TOP (@ends) id FROM mq.grouped WHERE type = @type ORDER BY group_key DESC, id DESC) AS b
        ) AS e;
    ELSE IF @table IN ('due', 'delayed')
        SELECT @low = MIN(e.id), @high = MAX(e.id)
        FROM (VALUES (CASE @table WHEN 'due' THEN '0001-01-01' ELSE @now END, CASE @table WHEN 'due' THEN @now ELSE '9999-12-31' END)) AS r (after, until)
        CROSS APPLY (
            SELECT a.id FROM (SELECT TOP (@ends) id FROM mq.delayed WHERE type = @type AND run_at > r.after AND run_at <= r.until ORDER BY run_at, id) AS a
            UNION ALL
            SELECT b.id FROM (SELECT TOP (@ends) id FROM mq.delayed WHERE type = @type AND run_at > r.after AND run_at <= r.until ORDER BY run_at DESC, id DESC) AS b
        ) AS e;
    ELSE
        SELECT @low = MIN(e.n), @high = MAX(e.n)
        FROM (
            SELECT a.n FROM (SELECT TOP (@ends) n FROM mq.dead WHERE type = @type ORDER BY died_at, id) AS a
            UNION ALL
            SELECT b.n FROM (SELECT TOP (@ends) n FROM mq.dead WHERE type = @type ORDER BY died_at DESC, id DESC) AS b
        ) AS e;
    -- Irregular steps, but the same in each call: messages of two queues may alternate.
    INSERT INTO @sample (id)
    SELECT @low + CAST(FLOOR((s.i + s.i * 61803399 % 100000000 / 1e8) * (@high - @low + 1) / 400) AS bigint)
    FROM (
        SELECT CAST(20 * a.i + b.i AS bigint) AS i
        FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19)) AS a (i)
        CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19)) AS b (i)
    ) AS s
    WHERE @high - @low >= 400;
    IF @table = 'dead'
        SELECT @found = COUNT(*)
        FROM @sample AS s
        INNER JOIN mq.dead AS e WITH (FORCESEEK, INDEX (dead_n)) ON e.n = s.id
        WHERE e.type = @type
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    ELSE
        SELECT @found = COUNT(*)
        FROM @sample AS s
        INNER JOIN mq.message AS m ON m.id = s.id
        LEFT JOIN mq.dead AS e ON e.id = m.id
        LEFT JOIN mq.delayed AS d ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
        WHERE m.type = @type AND e.id IS NULL AND @table = CASE WHEN d.run_at <= @now THEN 'due'
            WHEN d.run_at > @now THEN 'delayed' WHEN @table = 'grouped' THEN 'grouped' ELSE 'ready' END
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    IF @table IN ('ready', 'grouped')
        -- The sample does not show which messages are claimed.
        SELECT @claimed = COUNT(*)
        FROM mq.batch AS h
        INNER JOIN mq.claimed AS c ON c.batch_key = h.batch_key
        WHERE h.type = @type
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    SET @found = @found * (@high - @low + 1) / 400 - @claimed;
    RETURN CASE WHEN @found > 10001 THEN @found ELSE 10001 END;
END;

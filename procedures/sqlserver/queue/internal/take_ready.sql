-- take_ready: move the first ready messages of a type into a batch, and skip messages that another transaction has
--     locked.
-- Arguments: @type, @size (maximum number of messages), @n (the number of the marks to start at; NULL: scan from the
--     very start), @latest (no segment starts later), @batch_key
-- Returns: @took: number of new rows of mq.claimed; @front_moved: 1 when the marks must be renewed
--
-- A deleted row stays in the index until ghost cleanup removes it; under row versioning, as long as a snapshot is open.
-- A claim that starts at the beginning of the index then scans every message that was finished since. The marks divide
-- the index into segments:
--
--     start ........ mark of priority 0 ........ mark of priority 5 ........ end of the type
--        segment 1   |       segment 2           |       segment 3
--
-- A mark starts a segment, which ends before the priority of the next mark. All messages between the beginning of a
-- priority and its mark are finished. A priority without a mark belongs to the segment before it and is scanned from
-- its beginning, so the first message that is found there becomes its mark. Each segment is read in two key ranges, the
-- mark's own priority and the later ones: as one condition they would not be a range.
--
-- FORCE ORDER and LOOP JOIN leave one plan: a seek into the primary key in its order, and a seek per row found.
-- KEEPFIXED PLAN prevents recompilation. A table that fills and empties all the time always has outdated statistics:
-- without the hint the server would often sample it and recompile the statement, to the same plan.
CREATE OR ALTER PROCEDURE mq_internal.take_ready
    @type nvarchar(400), @size int, @n bigint, @latest datetime2(7), @batch_key uniqueidentifier, @took int OUTPUT,
    @front_moved bit OUTPUT
AS
BEGIN
    -- Renew a mark when the first message is this many ids after it.
    DECLARE @stride bigint = 1000;
    -- As in renew_marks. Priorities after the eighth get no mark.
    DECLARE @marks int = 8;
    -- Far below 5,000 locks per statement, where the server escalates to a table lock.
    DECLARE @step int = 1000;
    DECLARE @segment int = 0, @priority int = -32769, @run_at datetime2(7), @id bigint, @before int, @top int, @moved int;
    DECLARE @mark_run_at datetime2(7), @mark_id bigint;
    SELECT @took = 0, @front_moved = 0;
    WHILE @took < @size AND @priority < 32768
    BEGIN
        SELECT @segment = @segment + 1, @before = 32768;
        SELECT TOP (1) @before = priority, @mark_run_at = run_at, @mark_id = id
        FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND n = @n AND priority > @priority
        ORDER BY priority, run_at, id;
        SET @moved = 1;
        WHILE @took < @size AND @moved > 0 AND @run_at IS NOT NULL
        BEGIN
            SET @top = CASE WHEN @size - @took < @step THEN @size - @took ELSE @step END;
            DELETE r
            OUTPUT @batch_key, deleted.id, deleted.attempts + 1, deleted.priority, deleted.run_at
            INTO mq.claimed (batch_key, id, attempt, priority, run_at)
            FROM (
                SELECT TOP (@top) type, priority, lane, run_at, id
                FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority = @priority AND lane = N'-' AND run_at >= @run_at AND (run_at > @run_at OR id >= @id)
                ORDER BY priority, lane, run_at, id
            ) AS f
            INNER JOIN mq.ready AS r WITH (ROWLOCK)
                ON r.type = f.type AND r.priority = f.priority AND r.lane = f.lane AND r.run_at = f.run_at AND r.id = f.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SELECT @moved = @@ROWCOUNT, @took = @took + @@ROWCOUNT;
            IF @moved < @top
                SET @moved = 0;
        END;
        SET @moved = 1;
        WHILE @took < @size AND @moved > 0 AND @before - @priority > 1
        BEGIN
            SET @top = CASE WHEN @size - @took < @step THEN @size - @took ELSE @step END;
            DELETE r
            OUTPUT @batch_key, deleted.id, deleted.attempts + 1, deleted.priority, deleted.run_at
            INTO mq.claimed (batch_key, id, attempt, priority, run_at)
            FROM (
                SELECT TOP (@top) type, priority, lane, run_at, id
                FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority > @priority AND priority < @before
                ORDER BY priority, lane, run_at, id
            ) AS f
            INNER JOIN mq.ready AS r WITH (ROWLOCK)
                ON r.type = f.type AND r.priority = f.priority AND r.lane = f.lane AND r.run_at = f.run_at AND r.id = f.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SELECT @moved = @@ROWCOUNT, @took = @took + @@ROWCOUNT;
            IF @moved > 0 AND @segment <= @marks
                SET @front_moved = 1;
            IF @moved < @top
                SET @moved = 0;
        END;
        -- The next segment starts at its mark, or at @latest if that is earlier: messages may have appeared there since.
        SELECT @priority = @before, @run_at = CASE WHEN @mark_run_at < @latest THEN @mark_run_at ELSE @latest END,
            @id = CASE WHEN @mark_run_at < @latest THEN @mark_id ELSE 0 END;
    END;
    IF @front_moved = 0 AND EXISTS (
        SELECT *
        FROM (SELECT priority, MIN(id) AS id FROM mq.claimed WHERE batch_key = @batch_key GROUP BY priority) AS f
        INNER JOIN mq.mark AS m WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.type = @type AND m.n = @n AND m.priority = f.priority
        WHERE m.id NOT BETWEEN f.id - @stride AND f.id + @stride
    )
        SET @front_moved = 1;
END;

-- take_ready: move the first ready messages of a type under a batch key, passing over those that another transaction has locked.
-- Arguments:   @type, @size (at most so many), @n (the number of the marks to start at; NULL: scan from the very start), @latest (no
--              segment starts later), @batch_key
-- Returns:     @took: how many rows of mq.claimed are new; @front_moved (1: the marks are to be renewed)
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.take_ready N'email', 100, 17, @latest, @batch_key, @took OUTPUT, @front_moved OUTPUT;
--
-- What is deleted stays in the index until the ghost cleanup comes by, and under row versioning as long as a snapshot is open: a
-- claim that starts at the front of the index scans every message done since. The marks divide the index into segments:
--
--     start ........ mark of priority 0 ........ mark of priority 5 ........ end of the type
--        segment 1   |       segment 2           |       segment 3
--
-- A mark starts a segment, which ends before the priority of the next mark. What is between a priority's beginning and its mark is
-- done. A priority without a mark belongs to the segment before it and is scanned from its beginning, so the first message that is
-- found there becomes its mark. Each segment is taken in two ranges of the key, the mark's own priority and those after it: both as
-- one condition would not be one range.
--
-- FORCE ORDER and LOOP JOIN leave one plan: a seek into the primary key, in its order, and a seek for each row found. KEEPFIXED
-- PLAN, because a table that fills and empties all the time outdates its statistics all the time, and each time the server would
-- read samples of it and compile the statement again, to no other plan.

CREATE OR ALTER PROCEDURE mq.take_ready
    @type nvarchar(400),
    @size int,
    @n bigint,
    @latest datetime2(7),
    @batch_key uniqueidentifier,
    @took int OUTPUT,
    @front_moved bit OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- A mark is renewed when the front has moved by so many ids.
    DECLARE @stride bigint = 1000;
    -- As many marks as renew_marks writes. Priorities after the eighth are never learned.
    DECLARE @marks int = 8;
    -- Far from the 5,000 locks of one statement at which this server locks the whole table instead.
    DECLARE @step int = 1000;
    DECLARE @segment int = 0, @priority int = -32769, @run_at datetime2(7), @id bigint, @before int, @top int, @moved int;
    DECLARE @mark_run_at datetime2(7), @mark_id bigint;
    SELECT @took = 0, @front_moved = 0;
    WHILE @took < @size AND @priority < 32768
    BEGIN
        SELECT @segment = @segment + 1, @before = 32768;
        SELECT TOP (1) @before = priority, @mark_run_at = run_at, @mark_id = id
        FROM mq.mark WITH (READPAST, READCOMMITTEDLOCK)
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
                SELECT TOP (@top) type, priority, run_at, id
                FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority = @priority AND run_at >= @run_at AND (run_at > @run_at OR id >= @id)
                ORDER BY priority, run_at, id
            ) AS f
            INNER JOIN mq.ready AS r WITH (ROWLOCK)
                ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
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
                SELECT TOP (@top) type, priority, run_at, id
                FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority > @priority AND priority < @before
                ORDER BY priority, run_at, id
            ) AS f
            INNER JOIN mq.ready AS r WITH (ROWLOCK)
                ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SELECT @moved = @@ROWCOUNT, @took = @took + @@ROWCOUNT;
            IF @moved > 0 AND @segment <= @marks
                SET @front_moved = 1;
            IF @moved < @top
                SET @moved = 0;
        END;
        -- The next segment begins at the mark, or before it, where a message may have appeared since.
        SELECT @priority = @before, @run_at = CASE WHEN @mark_run_at < @latest THEN @mark_run_at ELSE @latest END,
            @id = CASE WHEN @mark_run_at < @latest THEN @mark_id ELSE 0 END;
    END;
    IF @front_moved = 0 AND EXISTS (
        SELECT *
        FROM (SELECT priority, MIN(id) AS id FROM mq.claimed WHERE batch_key = @batch_key GROUP BY priority) AS f
        INNER JOIN mq.mark AS m WITH (READPAST, READCOMMITTEDLOCK) ON m.type = @type AND m.n = @n AND m.priority = f.priority
        WHERE m.id NOT BETWEEN f.id - @stride AND f.id + @stride
    )
        SET @front_moved = 1;
END;
GO

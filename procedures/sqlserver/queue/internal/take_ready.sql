-- take_ready: move ready messages of one segment of the claim order under a batch key.
-- Arguments:   @type, @priority, @run_at and @id (the place where the segment begins; without @run_at: after this priority), @before (the
--              segment ends before this priority), @size (at most so many), @batch_key
-- Returns:     @took: how many rows of mq.claimed are new
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; passes over rows that others have locked
-- Example:     EXEC mq.take_ready N'email', 0, @run_at, 17, 32768, 100, @batch_key, @took OUTPUT;
--
-- First the priority at which the segment begins, then those after it: both as one condition would not be one range of the key.
-- At most 1,000 rows per statement, far from the 5,000 locks at which this server locks the whole table instead.
--
-- FORCE ORDER and LOOP JOIN leave one plan: a seek into the primary key, in its order, and a seek for each row found. KEEPFIXED
-- PLAN, because a table that fills and empties all the time outdates its statistics all the time, and each time the server would
-- read samples of it and compile the statement again, to no other plan.

CREATE OR ALTER PROCEDURE mq.take_ready
    @type nvarchar(400),
    @priority int,
    @run_at datetime2(7),
    @id bigint,
    @before int,
    @size int,
    @batch_key uniqueidentifier,
    @took int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @step int = 1000, @top int, @moved int;
    SET @took = 0;
    WHILE @took < @size
    BEGIN
        SET @top = CASE WHEN @size - @took < @step THEN @size - @took ELSE @step END;
        IF @run_at IS NOT NULL
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
        ELSE
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
        SET @moved = @@ROWCOUNT;
        SET @took = @took + @moved;
        IF @moved < @top AND (@run_at IS NULL OR @before - @priority <= 1)
            BREAK;
        IF @moved < @top
            SET @run_at = NULL;
    END;
END;
GO

-- take_around: move messages of a ring, inside and outside it, into a batch in order of id.
-- Arguments:   @type, @after_id (the position: higher ids come first), @size (maximum number of messages), @batch_key
-- Returns:     nothing; new rows of mq.claimed, with priority 0 for ids after the position and 1 from the lowest id on
-- Transaction: joins the caller's, which is READ COMMITTED; skips rows that others have locked

CREATE OR ALTER PROCEDURE mq_internal.take_around
    @type nvarchar(400),
    @after_id bigint,
    @size int,
    @batch_key uniqueidentifier
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @start datetime2(7) = '0001-01-01', @step int = 1000, @top int, @found int, @from int = 0, @left int = @size;
    -- Search more rows than needed: others may lock some first.
    DECLARE @near int = @size + 1000;
    DECLARE @place TABLE (
        n int NOT NULL PRIMARY KEY, priority smallint NOT NULL, run_at datetime2(7) NOT NULL, id bigint NOT NULL
    );
    INSERT INTO @place (n, priority, run_at, id)
    SELECT ROW_NUMBER() OVER (ORDER BY CASE WHEN a.id > @after_id THEN 0 ELSE 1 END, a.id), a.priority, a.run_at, a.id
    FROM (
        SELECT o.priority, o.run_at, o.id
        FROM (
            SELECT TOP (4000) priority, run_at, id
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority > -32768
            ORDER BY priority, run_at, id
        ) AS o
        UNION ALL
        SELECT s.priority, s.run_at, s.id
        FROM (
            SELECT TOP (4000) priority, run_at, id
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority = -32768 AND run_at > @start
            ORDER BY run_at, id
        ) AS s
        UNION ALL
        SELECT p.priority, p.run_at, p.id
        FROM (
            SELECT TOP (@near) priority, run_at, id
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority = -32768 AND run_at = @start AND id > @after_id
            ORDER BY id
        ) AS p
        UNION ALL
        SELECT q.priority, q.run_at, q.id
        FROM (
            SELECT TOP (@near) priority, run_at, id
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority = -32768 AND run_at = @start AND id <= @after_id
            ORDER BY id
        ) AS q
    ) AS a;
    SET @found = @@ROWCOUNT;
    WHILE @left > 0 AND @from < @found
    BEGIN
        SET @top = CASE WHEN @left < @step THEN @left ELSE @step END;
        DELETE r
        OUTPUT @batch_key, deleted.id, deleted.attempts + 1, CASE WHEN deleted.id > @after_id THEN 0 ELSE 1 END, @start
        INTO mq.claimed (batch_key, id, attempt, priority, run_at)
        FROM (
            SELECT TOP (@top) k.type, k.priority, k.run_at, k.id
            FROM @place AS p
            INNER JOIN mq.ready AS k WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                ON k.type = @type AND k.priority = p.priority AND k.run_at = p.run_at AND k.id = p.id
            WHERE p.n > @from AND p.n <= @from + @step
            ORDER BY p.n
        ) AS f
        INNER JOIN mq.ready AS r WITH (ROWLOCK)
            ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SELECT @left = @left - @@ROWCOUNT, @from = @from + @step;
    END;
END;
GO

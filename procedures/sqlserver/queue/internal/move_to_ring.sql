-- move_to_ring: move messages of a type into its ring, at most 2,000 per call; one caller at a time does this.
-- Transaction: joins the caller's, which is READ COMMITTED and commits at once: until then other sessions do not see the
--              moved messages

CREATE OR ALTER PROCEDURE mq_internal.move_to_ring
    @type nvarchar(400)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @start datetime2(7) = '0001-01-01', @step int = 1000, @round int = 0, @got int;
    DECLARE @resource nvarchar(255) = mq_internal.lock_name('ring', @type, N'');
    DECLARE @move mq.items;
    EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = 0;
    WHILE @got >= 0 AND @round < 2
    BEGIN
        DELETE FROM @move;
        DELETE r
        OUTPUT deleted.id, deleted.attempts INTO @move (id, attempts)
        FROM (
            SELECT TOP (@step) type, priority, run_at, id
            FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority > -32768
            ORDER BY priority, run_at, id
        ) AS f
        INNER JOIN mq.ready AS r WITH (ROWLOCK)
            ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF @@ROWCOUNT = 0
            DELETE r
            OUTPUT deleted.id, deleted.attempts INTO @move (id, attempts)
            FROM (
                SELECT TOP (@step) type, priority, run_at, id
                FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority = -32768 AND run_at > @start
                ORDER BY priority, run_at, id
            ) AS f
            INNER JOIN mq.ready AS r WITH (ROWLOCK)
                ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        INSERT INTO mq.ready (type, priority, run_at, id, attempts)
        SELECT @type, -32768, @start, id, attempts FROM @move;
        SET @round = @round + 1;
    END;
END;
GO

-- find_queues: list the names of queues that have settings, a schedule, or a message that is new or active.
-- Arguments:   @prefix (how the names begin, 1 to 200 characters; NULL: all), @after (only names after this one, 1 to 200
--              characters; NULL: from the first), @size (1 to 10,000; NULL: 20)
-- Returns:     type: up to @size names in the order of their code points
-- Errors:      50002 invalid_argument
-- Transaction: reads only, a few index entries per queue, however many messages it has; never waits for locks; without
--              READ_COMMITTED_SNAPSHOT it reads uncommitted rows
-- Example:     EXEC mq.find_queues N'mail.';
CREATE OR ALTER PROCEDURE mq.find_queues
    @prefix nvarchar(max) = NULL,
    @after nvarchar(max) = NULL,
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    EXEC mq_internal.require_name 'prefix', @prefix, 1;
    EXEC mq_internal.require_name 'after', @after, 1;
    EXEC mq_internal.require_range 'size', @size, 1, 10000;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @start nvarchar(400) = COALESCE(@prefix, N''), @left int = COALESCE(@size, 20), @type nvarchar(400);
    -- No name with this prefix sorts before @lowest. N'' compares like blanks, and a name may begin with a character that sorts
    -- before a blank.
    DECLARE @units int = DATALENGTH(@start) / 2;
    DECLARE @lowest nvarchar(400) = @start + REPLICATE(NCHAR(1), 400 - @units);
    DECLARE @last nvarchar(400) = COALESCE(@after, REPLICATE(NCHAR(1), 400));
    DECLARE @found TABLE (n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL);
    -- From each name to the next one: a scan would read all messages.
    WHILE @left > 0
    BEGIN
        SET @type = NULL;
        SELECT TOP (1) @type = t.type
        FROM (
            SELECT q.type FROM (SELECT TOP (1) type FROM mq.queue WHERE type > @last AND type >= @lowest AND type <> N'' ORDER BY type) AS q
            UNION ALL
            SELECT r.type FROM (SELECT TOP (1) type FROM mq.ready WHERE type > @last AND type >= @lowest ORDER BY type) AS r
            UNION ALL
            SELECT d.type FROM (SELECT TOP (1) type FROM mq.delayed WHERE type > @last AND type >= @lowest ORDER BY type) AS d
            UNION ALL
            SELECT b.type FROM (SELECT TOP (1) type FROM mq.batch WHERE type > @last AND type >= @lowest ORDER BY type) AS b
            UNION ALL
            SELECT s.type FROM mq_internal.next_scheduled(@last, @lowest) AS s
        ) AS t
        ORDER BY t.type
        OPTION (KEEPFIXED PLAN);
        IF @type IS NULL OR LEFT(@type, @units) > @start COLLATE Latin1_General_100_BIN2
            BREAK;
        -- In binary form, because blanks at the end do not count in a comparison of texts.
        IF CAST(LEFT(@type, @units) AS varbinary(800)) = CAST(@start AS varbinary(800))
        BEGIN
            INSERT INTO @found (type) VALUES (@type);
            SET @left = @left - 1;
        END;
        SET @last = @type;
    END;
    SELECT type FROM @found ORDER BY n;
END;

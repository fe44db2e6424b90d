-- queue_stats: what each queue holds; each number is exact up to 10,000 and stays there above, with capped = 1.
-- Arguments:   @type (NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds, capped, paused
-- Errors:      50002 invalid_argument
-- Transaction: reads only, waits for nobody, and never counts more than 10,001 rows a number; where the database does not keep
--              versions it counts what is not committed
-- Example:     EXEC mq.queue_stats;

CREATE OR ALTER PROCEDURE mq.queue_stats
    @type nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a limit of the session would hold in here too
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @oldest datetime2(7), @first_due datetime2(7), @most int = 10001, @n int = 0;
    DECLARE @ready bigint, @due bigint, @delayed bigint, @active bigint, @expired bigint, @dead bigint, @ordered bit, @paused bit;
    -- A name may begin with a character that comes before the blank, and to this server N'' is all blanks.
    DECLARE @next nvarchar(400) = NCHAR(1);
    DECLARE @rows TABLE (
        n int NOT NULL PRIMARY KEY, type nvarchar(400) NOT NULL, ready bigint NOT NULL, delayed bigint NOT NULL,
        active bigint NOT NULL, expired bigint NOT NULL, dead bigint NOT NULL, oldest datetime2(7), paused smallint NOT NULL
    );
    EXEC mq.require_name 'type', @type, 1;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @type IS NOT NULL
        SET @next = @type;
    WHILE @next IS NOT NULL
    BEGIN
        IF @type IS NULL
            -- The next type by name, from the front of each index. The policy without a name is no type.
            SELECT @next = MIN(t.type)
            FROM (
                SELECT q.type
                FROM (SELECT TOP (1) type FROM mq.queue WHERE type > @next AND type <> N'' ORDER BY type) AS q
                UNION ALL
                SELECT r.type FROM (SELECT TOP (1) type FROM mq.ready WHERE type > @next ORDER BY type) AS r
                UNION ALL
                SELECT d.type FROM (SELECT TOP (1) type FROM mq.delayed WHERE type > @next ORDER BY type) AS d
                UNION ALL
                SELECT b.type FROM (SELECT TOP (1) type FROM mq.batch WHERE type > @next ORDER BY type) AS b
                UNION ALL
                SELECT g.type FROM (SELECT TOP (1) type FROM mq.grouped WHERE type > @next ORDER BY type) AS g
                UNION ALL
                SELECT e.type FROM (SELECT TOP (1) type FROM mq.dead WHERE type > @next ORDER BY type) AS e
            ) AS t;
        IF @next IS NULL
            BREAK;
        SELECT TOP (1) @ordered = ordered, @paused = paused
        FROM mq.queue WHERE type IN (@next, N'') ORDER BY LEN(type) DESC;
        SET @oldest = NULL;
        IF @ordered = 1
            SELECT @ready = COUNT(*), @oldest = MIN(m.run_at)
            FROM (SELECT TOP (@most) id FROM mq.grouped WHERE type = @next ORDER BY group_key, id) AS g
            INNER JOIN mq.message AS m ON m.id = g.id
            OPTION (FORCE ORDER, LOOP JOIN);
        ELSE
        BEGIN
            SELECT @ready = COUNT(*)
            FROM (SELECT TOP (@most) id FROM mq.ready WHERE type = @next ORDER BY priority, run_at, id) AS r;
            -- By way of the message: in a ring the place in mq.ready tells no time.
            SELECT @oldest = m.run_at
            FROM (SELECT TOP (1) id FROM mq.ready WHERE type = @next ORDER BY priority, run_at, id) AS r
            INNER JOIN mq.message AS m ON m.id = r.id
            OPTION (FORCE ORDER, LOOP JOIN);
        END;
        SELECT @due = COUNT(*), @first_due = MIN(d.run_at)
        FROM (SELECT TOP (@most) run_at FROM mq.delayed WHERE type = @next AND run_at <= @now ORDER BY run_at, id) AS d;
        SELECT @delayed = COUNT(*)
        FROM (SELECT TOP (@most) id FROM mq.delayed WHERE type = @next AND run_at > @now ORDER BY run_at, id) AS d;
        SELECT @active = COUNT(*)
        FROM (
            SELECT TOP (@most) c.id
            FROM mq.batch AS b
            INNER JOIN mq.claimed AS c ON c.batch_key = b.batch_key
            WHERE b.type = @next AND b.lease_until > @now
        ) AS c
        OPTION (FORCE ORDER, LOOP JOIN);
        SELECT @expired = COUNT(*)
        FROM (
            SELECT TOP (@most) c.id
            FROM mq.batch AS b
            INNER JOIN mq.claimed AS c ON c.batch_key = b.batch_key
            WHERE b.type = @next AND b.lease_until <= @now
        ) AS c
        OPTION (FORCE ORDER, LOOP JOIN);
        SELECT @dead = COUNT(*) FROM (SELECT TOP (@most) id FROM mq.dead WHERE type = @next ORDER BY died_at, id) AS e;
        SET @n = @n + 1;
        INSERT INTO @rows (n, type, ready, delayed, active, expired, dead, oldest, paused)
        VALUES (@n, @next, @ready + @due, @delayed, @active, @expired, @dead, COALESCE(@oldest, @first_due), @paused);
        IF @type IS NOT NULL
            BREAK;
    END;
    SELECT type,
        CASE WHEN ready > 10000 THEN 10000 ELSE ready END AS ready,
        CASE WHEN delayed > 10000 THEN 10000 ELSE delayed END AS delayed,
        CASE WHEN active > 10000 THEN 10000 ELSE active END AS active,
        CASE WHEN expired > 10000 THEN 10000 ELSE expired END AS expired,
        CASE WHEN dead > 10000 THEN 10000 ELSE dead END AS dead,
        CAST(CASE WHEN oldest > @now THEN 0 ELSE DATEDIFF_BIG(MICROSECOND, oldest, @now) / 1e6 END AS float)
            AS oldest_ready_seconds,
        CAST(CASE WHEN ready > 10000 OR delayed > 10000 OR active > 10000 OR expired > 10000 OR dead > 10000 THEN 1 ELSE 0 END
            AS smallint) AS capped,
        paused
    FROM @rows
    ORDER BY n;
END;
GO

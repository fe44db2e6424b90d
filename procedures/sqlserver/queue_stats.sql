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
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @most int = 10001, @chunk int = 500;
    -- A name may begin with a character that comes before the blank, and to this server N'' is all blanks.
    DECLARE @next nvarchar(400) = NCHAR(1), @until nvarchar(400);
    -- One row for each message that is seen on the way from type to type; of a type with many only the first ones.
    DECLARE @seen TABLE (source tinyint NOT NULL, type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL);
    DECLARE @types TABLE (
        type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, in_ready bit NOT NULL, in_delayed bit NOT NULL,
        in_batch bit NOT NULL, in_grouped bit NOT NULL, in_dead bit NOT NULL
    );
    EXEC mq.require_name 'type', @type, 1;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @type IS NOT NULL
        INSERT INTO @types (type, in_ready, in_delayed, in_batch, in_grouped, in_dead) VALUES (@type, 1, 1, 1, 1, 1);
    WHILE @type IS NULL AND @next IS NOT NULL
    BEGIN
        DELETE FROM @seen;
        -- The policy without a name is no type.
        INSERT INTO @seen (source, type)
        SELECT 0, q.type FROM (SELECT TOP (@chunk) type FROM mq.queue WHERE type > @next AND type <> N'' ORDER BY type) AS q
        UNION ALL
        SELECT 1, r.type FROM (SELECT TOP (@chunk) type FROM mq.ready WHERE type > @next ORDER BY type) AS r
        UNION ALL
        SELECT 2, d.type FROM (SELECT TOP (@chunk) type FROM mq.delayed WHERE type > @next ORDER BY type) AS d
        UNION ALL
        SELECT 3, b.type FROM (SELECT TOP (@chunk) type FROM mq.batch WHERE type > @next ORDER BY type) AS b
        UNION ALL
        SELECT 4, g.type FROM (SELECT TOP (@chunk) type FROM mq.grouped WHERE type > @next ORDER BY type) AS g
        UNION ALL
        SELECT 5, e.type FROM (SELECT TOP (@chunk) type FROM mq.dead WHERE type > @next ORDER BY type) AS e;
        -- Up to here all tables have been read; NULL: to their end.
        SELECT @until = MIN(s.last)
        FROM (SELECT MAX(type) AS last FROM @seen GROUP BY source HAVING COUNT(*) = @chunk) AS s;
        INSERT INTO @types (type, in_ready, in_delayed, in_batch, in_grouped, in_dead)
        SELECT type, MAX(CASE source WHEN 1 THEN 1 ELSE 0 END), MAX(CASE source WHEN 2 THEN 1 ELSE 0 END),
            MAX(CASE source WHEN 3 THEN 1 ELSE 0 END), MAX(CASE source WHEN 4 THEN 1 ELSE 0 END), MAX(CASE source WHEN 5 THEN 1 ELSE 0 END)
        FROM @seen
        WHERE @until IS NULL OR type <= @until
        GROUP BY type;
        SET @next = @until;
    END;
    -- Each table is asked for the types that it holds, and for no other.
    SELECT n.type,
        CASE WHEN n.ready > 10000 THEN 10000 ELSE n.ready END AS ready,
        CASE WHEN n.delayed > 10000 THEN 10000 ELSE n.delayed END AS delayed,
        CASE WHEN n.active > 10000 THEN 10000 ELSE n.active END AS active,
        CASE WHEN n.expired > 10000 THEN 10000 ELSE n.expired END AS expired,
        CASE WHEN n.dead > 10000 THEN 10000 ELSE n.dead END AS dead,
        CAST(CASE WHEN n.oldest > @now THEN 0 ELSE DATEDIFF_BIG(MICROSECOND, n.oldest, @now) / 1e6 END AS float)
            AS oldest_ready_seconds,
        CAST(CASE
            WHEN n.ready > 10000 OR n.delayed > 10000 OR n.active > 10000 OR n.expired > 10000 OR n.dead > 10000 THEN 1
            ELSE 0
        END AS smallint) AS capped,
        CAST(n.paused AS smallint) AS paused
    FROM (
        SELECT t.type, COALESCE(q.paused, v.paused) AS paused,
            CASE COALESCE(q.ordered, v.ordered) WHEN 1 THEN g.count ELSE r.count END + d.due AS ready,
            d.count - d.due AS delayed, a.count AS active, x.count AS expired, e.count AS dead,
            COALESCE(CASE COALESCE(q.ordered, v.ordered) WHEN 1 THEN g.oldest ELSE o.oldest END, d.oldest) AS oldest
        FROM @types AS t
        CROSS JOIN (SELECT ordered, paused FROM mq.queue WHERE type = N'') AS v
        LEFT JOIN mq.queue AS q ON q.type = t.type
        CROSS APPLY (
            SELECT CAST(COUNT(*) AS bigint) AS count
            FROM (SELECT TOP (@most) id FROM mq.ready WHERE t.in_ready = 1 AND type = t.type) AS i
        ) AS r
        -- By way of the message: in a ring the place in mq.ready tells no time.
        OUTER APPLY (
            SELECT m.run_at AS oldest
            FROM (
                SELECT TOP (1) id FROM mq.ready WHERE t.in_ready = 1 AND type = t.type ORDER BY priority, run_at, id
            ) AS i
            INNER JOIN mq.message AS m ON m.id = i.id
        ) AS o
        CROSS APPLY (
            SELECT CAST(COUNT(*) AS bigint) AS count, MIN(m.run_at) AS oldest
            FROM (
                SELECT TOP (@most) id FROM mq.grouped WHERE t.in_grouped = 1 AND type = t.type ORDER BY group_key, id
            ) AS i
            INNER JOIN mq.message AS m ON m.id = i.id
        ) AS g
        CROSS APPLY (
            SELECT y.due, z.later + y.due AS count, y.oldest
            FROM (
                SELECT CAST(COUNT(*) AS bigint) AS due, MIN(run_at) AS oldest
                FROM (
                    SELECT TOP (@most) run_at FROM mq.delayed
                    WHERE t.in_delayed = 1 AND type = t.type AND run_at <= @now
                    ORDER BY run_at, id
                ) AS i
            ) AS y
            CROSS JOIN (
                SELECT CAST(COUNT(*) AS bigint) AS later
                FROM (
                    SELECT TOP (@most) id FROM mq.delayed
                    WHERE t.in_delayed = 1 AND type = t.type AND run_at > @now
                    ORDER BY run_at, id
                ) AS i
            ) AS z
        ) AS d
        CROSS APPLY (
            SELECT CAST(COUNT(*) AS bigint) AS count
            FROM (
                SELECT TOP (@most) c.id
                FROM mq.batch AS b
                INNER JOIN mq.claimed AS c ON c.batch_key = b.batch_key
                WHERE t.in_batch = 1 AND b.type = t.type AND b.lease_until > @now
            ) AS i
        ) AS a
        CROSS APPLY (
            SELECT CAST(COUNT(*) AS bigint) AS count
            FROM (
                SELECT TOP (@most) c.id
                FROM mq.batch AS b
                INNER JOIN mq.claimed AS c ON c.batch_key = b.batch_key
                WHERE t.in_batch = 1 AND b.type = t.type AND b.lease_until <= @now
            ) AS i
        ) AS x
        CROSS APPLY (
            SELECT CAST(COUNT(*) AS bigint) AS count
            FROM (
                SELECT TOP (@most) id FROM mq.dead WHERE t.in_dead = 1 AND type = t.type ORDER BY died_at, id
            ) AS i
        ) AS e
    ) AS n
    ORDER BY n.type
    OPTION (FORCE ORDER, LOOP JOIN);
END;
GO

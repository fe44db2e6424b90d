-- stats_of_all: the rows of queue_stats for all types that have a policy or a message.
CREATE OR ALTER PROCEDURE mq_internal.stats_of_all
    @now datetime2(7)
AS
BEGIN
    DECLARE @cap int = 10000, @grouped tinyint, @paused tinyint;
    -- Instead of NULL: an aggregate over a NULL sends a warning.
    DECLARE @never datetime2(7) = '9999-12-31';
    -- The policy without a name is not a queue: it holds the defaults.
    SELECT @grouped = grouped, @paused = paused FROM mq.queue WHERE type = N'';
    SELECT s.type, s.ready, s.delayed, s.active, s.expired, s.dead,
        CAST(CASE WHEN s.oldest > @now THEN 0 ELSE DATEDIFF_BIG(MICROSECOND, s.oldest, @now) / 1e6 END AS float)
            AS oldest_ready_seconds,
        CAST(CASE WHEN s.ready > @cap OR s.delayed > @cap OR s.dead > @cap THEN 1 ELSE 0 END AS smallint) AS estimated,
        CAST(s.paused AS smallint) AS paused
    FROM (
        SELECT n.type,
            -- In a queue with groups the rows of mq.ready are tickets.
            CAST(CASE n.grouped WHEN 1 THEN n.in_groups ELSE n.ready END + n.due AS bigint) AS ready,
            CAST(n.delayed AS bigint) AS delayed, CAST(n.active AS bigint) AS active, CAST(n.expired AS bigint) AS expired,
            CAST(n.dead AS bigint) AS dead,
            NULLIF(CASE
                WHEN n.grouped = 1 AND n.group_oldest < @never THEN n.group_oldest
                WHEN n.grouped = 0 AND n.ready_oldest < @never THEN n.ready_oldest
                ELSE n.due_oldest
            END, @never) AS oldest, n.paused
        FROM (
            SELECT type, CASE MIN(source) WHEN 0 THEN MAX(grouped) ELSE @grouped END AS grouped,
                CASE MIN(source) WHEN 0 THEN MAX(paused) ELSE @paused END AS paused,
                SUM(CASE source WHEN 1 THEN past ELSE 0 END) AS ready, MIN(CASE source WHEN 1 THEN oldest ELSE @never END) AS ready_oldest,
                SUM(CASE source WHEN 2 THEN past ELSE 0 END) AS in_groups,
                MIN(CASE source WHEN 2 THEN oldest ELSE @never END) AS group_oldest,
                SUM(CASE source WHEN 3 THEN past ELSE 0 END) AS due, MIN(CASE source WHEN 3 THEN oldest ELSE @never END) AS due_oldest,
                SUM(CASE source WHEN 3 THEN ahead ELSE 0 END) AS delayed, SUM(CASE source WHEN 4 THEN ahead ELSE 0 END) AS active,
                SUM(CASE source WHEN 4 THEN past ELSE 0 END) AS expired, SUM(CASE source WHEN 5 THEN past ELSE 0 END) AS dead
            FROM (
                SELECT type, 0 AS source, 0 AS past, 0 AS ahead, @never AS oldest,
                    CAST(grouped AS tinyint) AS grouped, CAST(paused AS tinyint) AS paused
                FROM mq.queue
                WHERE type <> N''
                UNION ALL
                SELECT type, 1, past, ahead, oldest, 0, 0 FROM mq_internal.count_types('ready', @cap, @now)
                UNION ALL
                SELECT type, 2, past, ahead, oldest, 0, 0 FROM mq_internal.count_types('grouped', @cap, @now)
                UNION ALL
                SELECT type, 3, past, ahead, oldest, 0, 0 FROM mq_internal.count_types('delayed', @cap, @now)
                UNION ALL
                SELECT type, 4, past, ahead, oldest, 0, 0 FROM mq_internal.count_types('batch', @cap, @now)
                UNION ALL
                SELECT type, 5, past, ahead, oldest, 0, 0 FROM mq_internal.count_types('dead', @cap, @now)
            ) AS c
            GROUP BY type
        ) AS n
    ) AS s
    ORDER BY s.type
    OPTION (ORDER GROUP);
END;

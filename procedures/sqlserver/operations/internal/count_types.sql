-- count_types: how many entries each type has in one of the queue's tables, as far as a part of its index shows.
-- Arguments:   @table (ready, delayed, batch, grouped or dead), @cap (what is above it is not counted on), @now
-- Returns:     type; size: the rows that were read; past and ahead: of delayed what is due and what is not, of batch expired and
--              active messages, else past is all; oldest: the smallest run_at of what is due
-- Errors:      none
-- Transaction: reads only; twice @cap index entries for each type that has more, and else each entry once or twice
-- Example:     SELECT * FROM mq.count_types('ready', 10000, SYSUTCDATETIME());
--
-- Each statement reads a part of an index in its order, and groups it in that order: nothing is sorted, and of a hundred thousand
-- types with a few messages each many come with one statement. A message claimed is an entry of its batch.

CREATE OR ALTER FUNCTION mq.count_types (@table varchar(10), @cap int, @now datetime2(7))
RETURNS @counts TABLE (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, size int NOT NULL, past int NOT NULL,
    ahead int NOT NULL, oldest datetime2(7)
)
AS
BEGIN
    DECLARE @part int = 2 * (@cap + 1), @rows int, @last nvarchar(400), @size int, @past int, @ahead int;
    -- No name comes before it. N'' would not do: it is all blanks, and a name may begin with what comes before these.
    DECLARE @from nvarchar(400) = REPLICATE(NCHAR(1), 400);
    WHILE @from IS NOT NULL
    BEGIN
        IF @table = 'ready'
            INSERT INTO @counts (type, size, past, ahead, oldest)
            -- In a ring the place in mq.ready is no time.
            SELECT r.type, COUNT(*), COUNT(*), 0, MIN(COALESCE(m.run_at, r.run_at))
            FROM (SELECT TOP (@part) type, run_at, id FROM mq.ready WHERE type > @from ORDER BY type, priority, run_at, id) AS r
            LEFT JOIN mq.message AS m ON m.id = r.id AND r.run_at = '0001-01-01'
            GROUP BY r.type
            OPTION (FORCE ORDER, LOOP JOIN, ORDER GROUP, KEEPFIXED PLAN);
        ELSE IF @table = 'grouped'
            INSERT INTO @counts (type, size, past, ahead, oldest)
            SELECT g.type, COUNT(*), COUNT(*), 0, MIN(m.run_at)
            FROM (SELECT TOP (@part) type, id FROM mq.grouped WHERE type > @from ORDER BY type, group_key, id) AS g
            LEFT JOIN mq.message AS m ON m.id = g.id
            GROUP BY g.type
            OPTION (FORCE ORDER, LOOP JOIN, ORDER GROUP, KEEPFIXED PLAN);
        ELSE IF @table = 'delayed'
            INSERT INTO @counts (type, size, past, ahead, oldest)
            SELECT d.type, COUNT(*), SUM(CASE WHEN d.run_at <= @now THEN 1 ELSE 0 END),
                SUM(CASE WHEN d.run_at > @now THEN 1 ELSE 0 END), MIN(CASE WHEN d.run_at <= @now THEN d.run_at END)
            FROM (SELECT TOP (@part) type, run_at FROM mq.delayed WHERE type > @from ORDER BY type, run_at, id) AS d
            GROUP BY d.type
            OPTION (ORDER GROUP, KEEPFIXED PLAN);
        ELSE IF @table = 'batch'
            INSERT INTO @counts (type, size, past, ahead, oldest)
            SELECT b.type, COUNT(*), SUM(CASE WHEN b.lease_until <= @now THEN 1 ELSE 0 END),
                SUM(CASE WHEN b.lease_until > @now THEN 1 ELSE 0 END), NULL
            FROM (
                SELECT TOP (@part) h.type, h.lease_until
                FROM mq.batch AS h
                INNER JOIN mq.claimed AS c ON c.batch_key = h.batch_key
                WHERE h.type > @from
                ORDER BY h.type, h.lease_until
            ) AS b
            GROUP BY b.type
            OPTION (FORCE ORDER, LOOP JOIN, ORDER GROUP, KEEPFIXED PLAN);
        ELSE
            INSERT INTO @counts (type, size, past, ahead, oldest)
            SELECT e.type, COUNT(*), COUNT(*), 0, NULL
            FROM (SELECT TOP (@part) type FROM mq.dead WHERE type > @from ORDER BY type, died_at, id) AS e
            GROUP BY e.type
            OPTION (ORDER GROUP, KEEPFIXED PLAN);
        SELECT @rows = SUM(size), @last = MAX(type) FROM @counts WHERE type > @from;
        SET @from = NULL;
        -- The last type of a full part may have more than it shows: the next part counts it whole, unless that is enough.
        IF @rows = @part
        BEGIN
            SELECT @size = size, @past = past, @ahead = ahead FROM @counts WHERE type = @last;
            IF @size <= @cap
                DELETE FROM @counts WHERE type = @last;
            ELSE IF @past > 0 AND @table IN ('delayed', 'batch')
            BEGIN
                -- So much is past that what is ahead was not reached.
                IF @table = 'delayed'
                    SELECT @ahead = COUNT(*)
                    FROM (SELECT TOP (@cap + 1) id FROM mq.delayed WHERE type = @last AND run_at > @now) AS d
                    OPTION (KEEPFIXED PLAN);
                ELSE
                    SELECT @ahead = COUNT(*)
                    FROM (
                        SELECT TOP (@cap + 1) c.id
                        FROM mq.batch AS h
                        INNER JOIN mq.claimed AS c ON c.batch_key = h.batch_key
                        WHERE h.type = @last AND h.lease_until > @now
                    ) AS b
                    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                UPDATE @counts SET ahead = @ahead WHERE type = @last;
            END;
            SELECT @from = MAX(type) FROM @counts;
        END;
    END;
    RETURN;
END;
GO

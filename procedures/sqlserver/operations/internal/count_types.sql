-- count_types: count the messages of each type in one of the queue's tables, claims exactly, others up to a limit.
-- Arguments: @table (ready, delayed, batch, grouped or dead), @cap (a count above it need not be exact), @now
-- Returns: type; size: the rows read; past and ahead: for delayed due and not due, for batch expired and active
--     messages; else past is the count; oldest: the smallest run_at of due messages; 9999-12-31: none
-- Transaction: reads each index entry once, but of a type with more than @cap entries at most twice @cap
--
-- Each statement reads a part of an index and groups it in the same order. Nothing is sorted, and with very many types
-- of a few messages each, one statement counts many types. A claimed message is counted as an entry of its batch.
CREATE OR ALTER FUNCTION mq_internal.count_types (@table varchar(10), @cap int, @now datetime2(7))
RETURNS @counts TABLE (
    type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, size int NOT NULL, past int NOT NULL,
    ahead int NOT NULL, oldest datetime2(7) NOT NULL
)
AS
BEGIN
    DECLARE @part int = CASE @table WHEN 'batch' THEN 2147483647 ELSE 2 * (@cap + 1) END, @rows int, @last nvarchar(400), @size int, @past int, @ahead int;
    DECLARE @never datetime2(7) = '9999-12-31';
    -- No name sorts before it. N'' compares like blanks, and a name may begin with a character that sorts before a blank.
    DECLARE @from nvarchar(400) = REPLICATE(NCHAR(1), 400);
    WHILE @from IS NOT NULL
    BEGIN
        IF @table = 'ready'
            INSERT INTO @counts (type, size, past, ahead, oldest)
            -- In a ring and in a fair queue the place in mq.ready is not a time.
            SELECT r.type, COUNT(*), COUNT(*), 0, MIN(COALESCE(m.run_at, r.run_at))
            FROM (SELECT TOP (@part) type, run_at, id FROM mq.ready WHERE type > @from ORDER BY type, priority, lane, run_at, id) AS r
            LEFT JOIN mq.message AS m ON m.id = r.id AND r.run_at = '0001-01-01'
            GROUP BY r.type
            OPTION (FORCE ORDER, LOOP JOIN, ORDER GROUP, KEEPFIXED PLAN);
        ELSE IF @table = 'grouped'
            INSERT INTO @counts (type, size, past, ahead, oldest)
            SELECT g.type, COUNT(*), COUNT(*), 0, MIN(COALESCE(m.run_at, @never))
            FROM (SELECT TOP (@part) type, id FROM mq.grouped WHERE type > @from ORDER BY type, group_key, id) AS g
            LEFT JOIN mq.message AS m ON m.id = g.id
            GROUP BY g.type
            OPTION (FORCE ORDER, LOOP JOIN, ORDER GROUP, KEEPFIXED PLAN);
        ELSE IF @table = 'delayed'
            INSERT INTO @counts (type, size, past, ahead, oldest)
            SELECT d.type, COUNT(*), SUM(CASE WHEN d.run_at <= @now THEN 1 ELSE 0 END),
                SUM(CASE WHEN d.run_at > @now THEN 1 ELSE 0 END), MIN(CASE WHEN d.run_at <= @now THEN d.run_at ELSE @never END)
            FROM (SELECT TOP (@part) type, run_at FROM mq.delayed WHERE type > @from ORDER BY type, run_at, id) AS d
            GROUP BY d.type
            OPTION (ORDER GROUP, KEEPFIXED PLAN);
        ELSE IF @table = 'batch'
            INSERT INTO @counts (type, size, past, ahead, oldest)
            SELECT b.type, COUNT(*), SUM(CASE WHEN b.lease_until <= @now THEN 1 ELSE 0 END),
                SUM(CASE WHEN b.lease_until > @now THEN 1 ELSE 0 END), @never
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
            SELECT e.type, COUNT(*), COUNT(*), 0, @never
            FROM (SELECT TOP (@part) type FROM mq.dead WHERE type > @from ORDER BY type, died_at, id) AS e
            GROUP BY e.type
            OPTION (ORDER GROUP, KEEPFIXED PLAN);
        SELECT @rows = SUM(size), @last = MAX(type) FROM @counts WHERE type > @from;
        SET @from = NULL;
        -- The last type of a full part may have more rows: the next part counts it again from its start, unless the count
        -- already exceeds the cap.
        IF @rows = @part
        BEGIN
            SELECT @size = size, @past = past, @ahead = ahead FROM @counts WHERE type = @last;
            IF @size <= @cap
                DELETE FROM @counts WHERE type = @last;
            ELSE IF @past > 0 AND @table = 'delayed'
            BEGIN
                -- The part ended before the messages that are not due.
                SELECT @ahead = COUNT(*)
                FROM (SELECT TOP (@cap + 1) id FROM mq.delayed WHERE type = @last AND run_at > @now) AS d
                OPTION (KEEPFIXED PLAN);
                UPDATE @counts SET ahead = @ahead WHERE type = @last;
            END;
            SELECT @from = MAX(type) FROM @counts;
        END;
    END;
    RETURN;
END;

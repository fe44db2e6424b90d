-- send_due: send the messages of the schedules of a type that are due.
-- Arguments: @type, @size (the most schedules)
--
-- The first claim of each second calls this. The call locks the row of a schedule, sends its message and sets its next
-- time in one transaction. So each time is sent once, even after a crash. One message makes up for all times that have
-- passed.
CREATE OR ALTER PROCEDURE mq_internal.send_due
    @type nvarchar(400), @size int
AS
BEGIN
    -- After the clock was set back by more than this, the next time is set again. After a smaller step nothing is sent
    -- twice, as in cron.
    DECLARE @set_back int = 3;
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @n int = 0, @last int, @name nvarchar(400), @cron nvarchar(400), @zone nvarchar(400);
    DECLARE @next_at datetime2(7), @last_id bigint, @overlap bit, @id bigint;
    DECLARE @due TABLE (n int NOT NULL PRIMARY KEY, name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL);
    -- First the names, without holding locks, then each row by its primary key: two calls that lock rows of one table
    -- through two indexes deadlock.
    INSERT INTO @due (n, name)
    SELECT ROW_NUMBER() OVER (ORDER BY s.next_at, s.name), s.name
    FROM (
        SELECT TOP (@size) name, next_at
        FROM mq.schedule WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND (next_at <= @now OR moved_at > DATEADD(HOUR, @set_back, @now))
        ORDER BY next_at
    ) AS s;
    SET @last = @@ROWCOUNT;
    WHILE @n < @last
    BEGIN
        SELECT @n = @n + 1, @name = NULL;
        SELECT @name = s.name, @cron = s.cron, @zone = s.time_zone, @next_at = s.next_at, @last_id = s.last_id, @overlap = s.overlap
        FROM @due AS d
        INNER JOIN mq.schedule AS s WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON s.name = d.name
        WHERE d.n = @n AND s.type = @type AND (s.next_at <= @now OR s.moved_at > DATEADD(HOUR, @set_back, @now))
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF @name IS NULL
            CONTINUE;
        IF @next_at <= @now AND mq_internal.last_lives(@last_id, @overlap) = 0
            EXEC mq_internal.send_occurrence @name, @next_at, @id OUTPUT;
        -- The database may have been restored to a server that does not know the zone. Claims must still work;
        -- queue_health reports the schedule.
        SET @next_at = NULL;
        IF mq_internal.knows_zone(@zone) = 1
            EXEC mq_internal.next_time @cron, @now, @zone, @next_at OUTPUT;
        UPDATE mq.schedule SET next_at = @next_at, moved_at = @now WHERE name = @name;
    END;
END;

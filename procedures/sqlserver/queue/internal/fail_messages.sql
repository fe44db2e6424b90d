-- fail_messages: record failed attempts: retry each message after a delay, or dead-letter it after its last attempt. One that
--     was cancelled is deleted.
-- Arguments: @type, @consumer, @failed (at most 1,000 rows: attempts is the number of this attempt; retry in seconds,
--     NULL: the policy's backoff, -1: dead-letter it now; error, cut to 4,000 characters)
-- Returns: @dead: number of new dead letters
CREATE OR ALTER PROCEDURE mq_internal.fail_messages
    @type nvarchar(400), @consumer nvarchar(400), @failed mq.failures READONLY, @dead bigint OUTPUT
AS
BEGIN
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @max_attempts int, @backoff int, @backoff_max int, @ordered bit, @grouped bit, @stops bit;
    DECLARE @gone mq.items, @freed mq.items, @all mq.items;
    DECLARE @delay TABLE (id bigint NOT NULL PRIMARY KEY, milliseconds bigint NOT NULL);
    INSERT INTO @all (id, attempts) SELECT id, attempts FROM @failed;
    EXEC mq_internal.drop_cancelled @type, @all;
    SELECT @max_attempts = max_attempts, @backoff = backoff_seconds, @backoff_max = backoff_max_seconds,
        @ordered = ordered, @grouped = grouped
    FROM mq_internal.policy(@type);
    INSERT INTO mq.dead (id, died_at, attempts, type, consumer, error, error_group)
    OUTPUT inserted.id, inserted.attempts INTO @gone (id, attempts)
    SELECT m.id, @now, f.attempts, @type, @consumer, LEFT(f.error, 4000), mq_internal.error_group(f.error)
    FROM @failed AS f
    INNER JOIN mq.message AS m ON m.id = f.id
    WHERE COALESCE(f.retry, 0) = -1 OR f.attempts >= COALESCE(m.max_attempts, @max_attempts)
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    SET @dead = @@ROWCOUNT;
    IF @dead > 0 AND @ordered = 1
    BEGIN
        -- The lock keeps set_queue waiting: it sees these dead letters, or this call sees its change.
        SELECT @stops = dead_stops_group FROM mq.queue WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK, INDEX (queue_pk)) WHERE type = @type;
        INSERT INTO @freed (id, attempts)
        SELECT g.id, g.attempts
        FROM @gone AS g
        INNER JOIN mq.message AS m ON m.id = g.id
        WHERE @stops = 0 OR m.group_key IS NULL
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        EXEC mq_internal.free_groups @type, @freed;
    END;
    -- Random jitter, half to all of the backoff: messages that failed together are retried at different times. RAND()
    -- returns one number for all rows. Store the delays in a table: in a subquery each use could draw another number.
    INSERT INTO @delay (id, milliseconds)
    SELECT f.id, CAST(COALESCE(f.retry * 1000e0, b.seconds * (500 + ABS(CHECKSUM(NEWID()) % 501))) AS bigint)
    FROM @failed AS f
    CROSS APPLY (SELECT @backoff * POWER(2e0, CASE WHEN f.attempts > 40 THEN 40 ELSE f.attempts - 1 END) AS seconds) AS a
    CROSS APPLY (SELECT CASE WHEN a.seconds > @backoff_max THEN @backoff_max ELSE a.seconds END AS seconds) AS b
    WHERE NOT EXISTS (SELECT * FROM @gone AS g WHERE g.id = f.id);
    UPDATE m
    SET sent_run_at = COALESCE(m.sent_run_at, m.run_at),
        run_at = DATEADD(MILLISECOND, d.milliseconds % 1000, DATEADD(SECOND, d.milliseconds / 1000, @now))
    FROM @delay AS d
    INNER JOIN mq.message AS m WITH (ROWLOCK) ON m.id = d.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    INSERT INTO mq.delayed (type, run_at, id, priority, attempts, error)
    SELECT @type, m.run_at, m.id, m.priority, f.attempts, LEFT(f.error, 4000)
    FROM @delay AS d
    INNER JOIN @failed AS f ON f.id = d.id
    INNER JOIN mq.message AS m ON m.id = d.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    -- In a queue without order a failed message does not block its group.
    IF @grouped = 1 AND @ordered = 0
    BEGIN
        EXEC mq_internal.free_groups @type, @all;
        EXEC mq_internal.issue_tickets @type, @all, 1;
    END;
END;

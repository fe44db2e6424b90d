-- stats_of_one: the row of queue_stats for one type.
-- Transaction: reads only, at the caller's level, at most 10,001 rows per number, and all claims
CREATE OR ALTER PROCEDURE mq_internal.stats_of_one
    @type nvarchar(400), @now datetime2(7)
AS
BEGIN
    DECLARE @cap int = 10000, @grouped bit, @paused bit, @oldest datetime2(7), @due_oldest datetime2(7);
    DECLARE @ready bigint, @due bigint, @delayed bigint, @active bigint, @expired bigint, @dead bigint;
    -- Not from mq_internal.policy, which reads committed rows and would wait for an open set_queue.
    SELECT TOP (1) @grouped = grouped, @paused = paused FROM mq.queue WHERE type IN (@type, N'') ORDER BY type DESC;
    IF @grouped = 1
        SELECT @ready = COUNT(*), @oldest = MIN(m.run_at)
        FROM (SELECT TOP (@cap + 1) id FROM mq.grouped WHERE type = @type ORDER BY group_key, id) AS g
        LEFT JOIN mq.message AS m ON m.id = g.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    ELSE
        -- In a ring and in a fair queue the place in mq.ready is not a time.
        SELECT @ready = COUNT(*), @oldest = MIN(COALESCE(m.run_at, r.run_at))
        FROM (SELECT TOP (@cap + 1) run_at, id FROM mq.ready WHERE type = @type ORDER BY priority, lane, run_at, id) AS r
        LEFT JOIN mq.message AS m ON m.id = r.id AND r.run_at = '0001-01-01'
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    SELECT @due = COUNT(*), @due_oldest = MIN(d.run_at)
    FROM (SELECT TOP (@cap + 1) run_at FROM mq.delayed WHERE type = @type AND run_at <= @now ORDER BY run_at, id) AS d
    OPTION (KEEPFIXED PLAN);
    SELECT @delayed = COUNT(*)
    FROM (SELECT TOP (@cap + 1) id FROM mq.delayed WHERE type = @type AND run_at > @now ORDER BY run_at, id) AS d
    OPTION (KEEPFIXED PLAN);
    SELECT @active = COUNT(*)
    FROM mq.batch AS h
    INNER JOIN mq.claimed AS c ON c.batch_key = h.batch_key
    WHERE h.type = @type AND h.lease_until > @now
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    SELECT @expired = COUNT(*)
    FROM mq.batch AS h
    INNER JOIN mq.claimed AS c ON c.batch_key = h.batch_key
    WHERE h.type = @type AND h.lease_until <= @now
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    SELECT @dead = COUNT(*)
    FROM (SELECT TOP (@cap + 1) id FROM mq.dead WHERE type = @type ORDER BY died_at, id) AS e
    OPTION (KEEPFIXED PLAN);
    IF @ready > @cap
        SET @ready = mq_internal.estimate(CASE @grouped WHEN 1 THEN 'grouped' ELSE 'ready' END, @type, @now);
    IF @due > @cap
        SET @due = mq_internal.estimate('due', @type, @now);
    IF @delayed > @cap
        SET @delayed = mq_internal.estimate('delayed', @type, @now);
    IF @dead > @cap
        SET @dead = mq_internal.estimate('dead', @type, @now);
    SELECT @ready = @ready + @due, @oldest = COALESCE(@oldest, @due_oldest);
    SELECT @type AS type, @ready AS ready, @delayed AS delayed, @active AS active, @expired AS expired, @dead AS dead,
        CAST(CASE WHEN @oldest > @now THEN 0 ELSE DATEDIFF_BIG(MICROSECOND, @oldest, @now) / 1e6 END AS float)
            AS oldest_ready_seconds,
        CAST(CASE WHEN @ready > @cap OR @delayed > @cap OR @dead > @cap THEN 1 ELSE 0 END AS smallint) AS estimated,
        CAST(@paused AS smallint) AS paused;
END;

-- clean_buckets: delete freed places and full buckets of groups, and after a change of limits unblock stuck groups.
--
-- The first claim of each second calls this. A bucket whose full_at is more than one period ahead was written before the
-- clock was set back: it starts to fill now.
CREATE OR ALTER PROCEDURE mq_internal.clean_buckets
    @type nvarchar(400)
AS
BEGIN
    DECLARE @most int = 100;
    -- Seconds. Claims that began with the old limits have committed by then.
    DECLARE @mend int = 10;
    DECLARE @now datetime2(6) = SYSUTCDATETIME(), @group_key nvarchar(400), @resource nvarchar(255), @got int, @n int = 0, @last int;
    DECLARE @changed bit, @latest datetime2(6), @ahead int, @mended int = 0;
    DECLARE @groups TABLE (n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL);
    DECLARE @stuck mq.items;
    IF EXISTS (SELECT * FROM mq.queue WHERE type = @type AND changed_at BETWEEN DATEADD(SECOND, -@mend, @now) AND @now)
    BEGIN
        INSERT INTO @stuck (id, attempts) SELECT TOP (1000) id, 0 FROM mq_internal.stuck_groups(@type) ORDER BY id;
        IF @@ROWCOUNT > 0
            EXEC mq_internal.issue_tickets @type, @stuck, 0;
    END;
    SELECT @latest = DATEADD(SECOND, MAX(s.seconds), @now)
    FROM (
        SELECT group_rate_seconds AS seconds FROM mq_internal.policy(@type)
        UNION ALL
        SELECT rate_seconds FROM mq.queue_group WITH (READCOMMITTED, FORCESEEK, INDEX (queue_group_lane)) WHERE type = @type AND rate_seconds > 0
    ) AS s;
    INSERT INTO @groups (group_key)
    SELECT u.group_key
    FROM (
        SELECT f.group_key
        FROM (
            SELECT TOP (@most) group_key
            FROM mq.group_freed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (group_freed_pk))
            WHERE type = @type
            ORDER BY group_key, id
        ) AS f
        UNION
        SELECT b.group_key
        FROM (
            SELECT TOP (@most) group_key
            FROM mq.bucket WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (bucket_full))
            WHERE type = @type AND (full_at <= @now OR full_at > @latest)
            ORDER BY full_at
        ) AS b
    ) AS u;
    SET @last = @@ROWCOUNT;
    WHILE @n < @last
    BEGIN
        SET @n = @n + 1;
        SELECT @group_key = group_key FROM @groups WHERE n = @n;
        SET @resource = mq_internal.lock_name('group', @type, @group_key);
        EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = 0;
        IF @got < 0
            CONTINUE;
        EXEC mq_internal.forget_freed @type, @group_key, @changed OUTPUT;
        UPDATE b
        SET full_at = @latest
        FROM mq.bucket AS b WITH (ROWLOCK, FORCESEEK, INDEX (bucket_pk))
        WHERE b.type = @type AND b.group_key = @group_key AND b.full_at > @latest;
        SELECT @ahead = @@ROWCOUNT, @mended = @mended + @@ROWCOUNT;
        DELETE b
        FROM mq.bucket AS b WITH (ROWLOCK, FORCESEEK, INDEX (bucket_pk))
        WHERE b.type = @type AND b.group_key = @group_key AND b.full_at <= @now;
        IF @@ROWCOUNT = 0 AND @changed = 0 AND @ahead = 0
            EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Transaction';
    END;
    IF @mended > 0
        EXEC mq_internal.hurry_groups @type;
END;

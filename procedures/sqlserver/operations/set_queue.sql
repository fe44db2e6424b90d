-- set_queue: change settings of a queue.
-- Arguments:   @type (1 to 200 characters), @options (a flat JSON object; a setting that it does not name keeps its
--              value, null sets the default). The settings with their limits and defaults: lease_seconds (1 to 86,400;
--              60), max_attempts (1 to 1,000; 25), backoff_seconds (0 to 315,360,000; 5), backoff_max_seconds (0 to
--              315,360,000; 3,600), on_complete (delete or archive; delete), ordered (0 or 1; 0), notify (0 or 1; 1),
--              max_active (0 to 1,000,000; 0, no limit), rate (messages per rate_seconds, 0 to 1,000,000; 0, no limit),
--              rate_seconds (1 to 86,400; 1); the same limits for each group_key: group_max_active (0), group_rate (0),
--              group_rate_seconds (1); ring (1: consumers go round by id; 0), fair (1: the groups of a priority take
--              turns; 0), dead_stops_group (1: in an ordered queue, a dead letter stops its group_key until it is redriven
--              or deleted; 0)
-- Returns:     the settings of the queue after the call, paused, and known (0: nothing had this name before)
-- Errors:      50002 invalid_argument, 50004 queue_not_empty (ordered can change, and limits per group can be added or
--              removed, only without new and active messages), 50009 area_missing (ring and fair need the area of that name)
-- Transaction: joins the caller's; calls for one type wait for each other; without READ_COMMITTED_SNAPSHOT claims of the
--              type wait until the transaction ends; the first max_active of a queue waits for calls that are finishing
--              messages; in an ordered queue the call waits for calls that dead-letter messages
-- Example:     EXEC mq.set_queue N'invoice', N'{"max_attempts": 5, "on_complete": "archive"}';
CREATE OR ALTER PROCEDURE mq.set_queue
    @type nvarchar(max),
    @options nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @was bit, @was_grouped bit, @was_ring bit, @was_fair bit, @grouped bit, @limits bit, @holds bit, @with nvarchar(30), @step int = 1000, @took int = 1, @counted int = 0;
    DECLARE @old_max int, @old_rate int, @old_seconds int, @own_places int, @own_rate int, @until datetime2(7), @known smallint;
    DECLARE @old_stops bit, @last bigint = -9223372036854775808;
    DECLARE @some mq.items;
    DECLARE @dead TABLE (id bigint NOT NULL PRIMARY KEY);
    DECLARE @lease_seconds bigint, @max_attempts bigint, @backoff_seconds bigint, @backoff_max_seconds bigint,
        @on_complete nvarchar(max), @ordered bigint, @notify bigint, @max_active bigint, @rate bigint, @rate_seconds bigint,
        @group_max_active bigint, @group_rate bigint, @group_rate_seconds bigint, @ring bigint, @fair bigint, @stops bigint;
    DECLARE @read TABLE (name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, value nvarchar(max));
    DECLARE @kinds nvarchar(max) = N'{"lease_seconds": [1, 86400], "max_attempts": [1, 1000], "backoff_seconds": [0, 315360000],
        "backoff_max_seconds": [0, 315360000], "on_complete": "text", "ordered": [0, 1], "notify": [0, 1],
        "max_active": [0, 1000000], "rate": [0, 1000000], "rate_seconds": [1, 86400], "group_max_active": [0, 1000000],
        "group_rate": [0, 1000000], "group_rate_seconds": [1, 86400], "ring": [0, 1], "fair": [0, 1],
        "dead_stops_group": [0, 1]}';
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        SET @name = @type;
        EXEC mq_internal.require_options @options, N'options', @kinds;
        INSERT INTO @read (name, value) SELECT name, value FROM mq_internal.read_options(@options, @kinds);
        -- null: the default.
        SELECT @lease_seconds = (SELECT COALESCE(CAST(value AS bigint), d.lease_seconds) FROM @read WHERE name = N'lease_seconds'),
            @max_attempts = (SELECT COALESCE(CAST(value AS bigint), d.max_attempts) FROM @read WHERE name = N'max_attempts'),
            @backoff_seconds = (SELECT COALESCE(CAST(value AS bigint), d.backoff_seconds) FROM @read WHERE name = N'backoff_seconds'),
            @backoff_max_seconds = (SELECT COALESCE(CAST(value AS bigint), d.backoff_max_seconds) FROM @read WHERE name = N'backoff_max_seconds'),
            @on_complete = (SELECT COALESCE(value, d.on_complete) FROM @read WHERE name = N'on_complete'),
            @ordered = (SELECT COALESCE(CAST(value AS bigint), d.ordered) FROM @read WHERE name = N'ordered'),
            @notify = (SELECT COALESCE(CAST(value AS bigint), d.notify) FROM @read WHERE name = N'notify'),
            @max_active = (SELECT COALESCE(CAST(value AS bigint), d.max_active) FROM @read WHERE name = N'max_active'),
            @rate = (SELECT COALESCE(CAST(value AS bigint), d.rate) FROM @read WHERE name = N'rate'),
            @rate_seconds = (SELECT COALESCE(CAST(value AS bigint), d.rate_seconds) FROM @read WHERE name = N'rate_seconds'),
            @group_max_active = (SELECT COALESCE(CAST(value AS bigint), d.group_max_active) FROM @read WHERE name = N'group_max_active'),
            @group_rate = (SELECT COALESCE(CAST(value AS bigint), d.group_rate) FROM @read WHERE name = N'group_rate'),
            @group_rate_seconds = (SELECT COALESCE(CAST(value AS bigint), d.group_rate_seconds) FROM @read WHERE name = N'group_rate_seconds'),
            @ring = (SELECT COALESCE(CAST(value AS bigint), d.ring) FROM @read WHERE name = N'ring'),
            @fair = (SELECT COALESCE(CAST(value AS bigint), d.fair) FROM @read WHERE name = N'fair'),
            @stops = (SELECT COALESCE(CAST(value AS bigint), d.dead_stops_group) FROM @read WHERE name = N'dead_stops_group')
        FROM mq_internal.policy(N'') AS d;
        -- Compared with a character appended, because the server ignores trailing blanks.
        IF (@on_complete + N'.') COLLATE Latin1_General_100_BIN2 NOT IN (N'delete.', N'archive.')
            EXEC mq_internal.raise_error 'invalid_argument', N'on_complete: must be delete or archive';
        IF @ring = 1
            EXEC mq_internal.require_area N'ring';
        IF @fair = 1
            EXEC mq_internal.require_area N'fair';
        IF @own = 1
            BEGIN TRANSACTION;
        -- Before locking the policy: a call that this one waits for may still need to read the policy.
        IF @max_active > 0 AND EXISTS (SELECT * FROM mq_internal.policy(@name) WHERE max_active = 0)
            EXEC mq_internal.count_batches @name, 1, @counted OUTPUT;
        SET @known = mq_internal.is_known(@name);
        EXEC mq_internal.add_queue @name;
        SELECT @was = ordered, @was_grouped = grouped, @was_ring = ring, @was_fair = fair, @old_max = group_max_active,
            @old_rate = group_rate, @old_seconds = group_rate_seconds, @ordered = COALESCE(@ordered, ordered),
            @group_max_active = COALESCE(@group_max_active, group_max_active), @group_rate = COALESCE(@group_rate, group_rate),
            @group_rate_seconds = COALESCE(@group_rate_seconds, group_rate_seconds), @ring = COALESCE(@ring, ring),
            @fair = COALESCE(@fair, fair), @old_stops = dead_stops_group, @stops = COALESCE(@stops, dead_stops_group)
        FROM mq.queue
        WHERE type = @name;
        SELECT @own_places = MAX(COALESCE(max_active, 0)), @own_rate = MAX(COALESCE(rate, 0))
        FROM mq.queue_group WITH (FORCESEEK, INDEX (queue_group_lane))
        WHERE type = @name;
        SET @limits = CASE WHEN @group_max_active > 0 OR @group_rate > 0 OR @own_places > 0 OR @own_rate > 0 THEN 1 ELSE 0 END;
        SET @grouped = CASE WHEN @ordered = 1 THEN 1 ELSE @limits END;
        IF @ordered = 1 AND @group_max_active > 1
            EXEC mq_internal.raise_error 'invalid_argument', N'group_max_active: must be 0 or 1 on an ordered queue';
        IF @ordered = 1 AND @own_places > 1
            EXEC mq_internal.raise_error 'invalid_argument', N'ordered: a group has a max_active above 1, see set_group';
        IF @stops > @ordered
            EXEC mq_internal.raise_error 'invalid_argument', N'dead_stops_group: must be 0 on a queue that is not ordered';
        SET @with = CASE WHEN @ordered = 1 THEN N'ordered' WHEN @limits = 1 THEN N'limits per group' WHEN @fair = 1 THEN N'fair' END;
        IF @ring = 1 AND @with IS NOT NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'ring: cannot be combined with {}', @with;
        IF @ordered <> @was OR @grouped <> @was_grouped
        BEGIN
            EXEC mq_internal.holds_messages @name, @was_grouped, @holds OUTPUT;
            -- The last limit was that of a group: messages keep their groups until the queue is empty.
            IF @holds = 1 AND @ordered = @was AND @grouped = 0 AND @ring = 0 AND @old_max = 0 AND @old_rate = 0
                SET @grouped = 1;
            ELSE IF @holds = 1
                EXEC mq_internal.raise_error 'queue_not_empty',
                    N'ordered can change, and limits per group be added or removed, only while {} holds no new and no active message', @name;
            -- Rows of a transaction that sent while the queue still had groups, and committed after it had none.
            WHILE @was_grouped = 0 AND @took > 0
            BEGIN
                DELETE TOP (@step) FROM mq.grouped WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name;
                SET @took = @@ROWCOUNT;
            END;
        END;
        -- Before the policy changes: a claim that has locked this row reads the policy once more.
        IF @counted > 0 OR @max_active > 0 OR @rate > 0
        BEGIN
            -- Claims that began earlier have committed by then; until then every claim searches for their batches.
            SET @until = DATEADD(SECOND, 10, SYSUTCDATETIME());
            UPDATE mq.limited SET active = active + @counted, counted_at = @until WHERE type = @name;
            IF @@ROWCOUNT = 0
                INSERT INTO mq.limited (type, active, counted_at) VALUES (@name, @counted, @until);
        END;
        UPDATE mq.queue
        SET lease_seconds = COALESCE(@lease_seconds, lease_seconds),
            max_attempts = COALESCE(@max_attempts, max_attempts),
            backoff_seconds = COALESCE(@backoff_seconds, backoff_seconds),
            backoff_max_seconds = COALESCE(@backoff_max_seconds, backoff_max_seconds),
            on_complete = COALESCE(@on_complete, on_complete), ordered = @ordered, ring = @ring, fair = @fair,
            notify = COALESCE(CAST(@notify AS bit), notify), max_active = COALESCE(@max_active, max_active),
            rate = COALESCE(@rate, rate), rate_seconds = COALESCE(@rate_seconds, rate_seconds),
            group_max_active = @group_max_active, group_rate = @group_rate, group_rate_seconds = @group_rate_seconds,
            grouped = @grouped, dead_stops_group = @stops
        WHERE type = @name;
        IF @was_grouped = 1 AND @grouped = 1 AND (
            (@old_max > 0 AND (@group_max_active = 0 OR @group_max_active > @old_max))
            OR (@old_rate > 0 AND (@group_rate = 0 OR @group_rate * @old_seconds > @old_rate * @group_rate_seconds))
        )
            EXEC mq_internal.rebuild_groups @name;
        IF @stops <> @old_stops
        BEGIN
            -- Waits for calls that redrive or delete dead letters: those are gone.
            INSERT INTO @dead (id)
            SELECT id FROM mq.dead WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (dead_age)) WHERE type = @name;
            SET @took = @@ROWCOUNT;
            WHILE @took > 0
            BEGIN
                DELETE FROM @some;
                INSERT INTO @some (id, attempts) SELECT TOP (@step) id, 0 FROM @dead WHERE id > @last ORDER BY id;
                SELECT @took = COUNT(*), @last = MAX(id) FROM @some;
                IF @stops = 1
                BEGIN
                    -- Places that they had when the queue had limits per group and no order: see group_freed.
                    DELETE f
                    FROM @some AS s
                    INNER JOIN mq.group_lock AS l ON l.id = s.id
                    INNER JOIN mq.group_freed AS f WITH (ROWLOCK, FORCESEEK, INDEX (group_freed_pk))
                        ON f.type = l.type AND f.group_key = l.group_key AND f.id = l.id
                    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                    DELETE l
                    FROM @some AS s
                    INNER JOIN mq.group_lock AS l WITH (ROWLOCK) ON l.id = s.id
                    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                    INSERT INTO mq.group_lock (type, group_key, id)
                    SELECT @name, m.group_key, m.id
                    FROM @some AS s
                    INNER JOIN mq.message AS m ON m.id = s.id
                    WHERE m.group_key IS NOT NULL
                    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                END
                ELSE IF @took > 0
                    EXEC mq_internal.free_groups @name, @some;
            END;
        END;
        IF @ring <> @was_ring OR @fair <> @was_fair
        BEGIN
            DELETE r
            FROM mq.ring AS r WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
            WHERE r.type = @name;
            EXEC mq_internal.move_ready @name, @ring, @fair, @grouped;
            EXEC mq_internal.lower_mark @name;
        END;
        -- A queue that does not archive keeps no results.
        SET @took = 1;
        WHILE @on_complete = N'delete' AND @took > 0
        BEGIN
            DELETE TOP (@step) k
            FROM mq.result AS k WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            INNER JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = k.id
            WHERE m.type = @name
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SET @took = @@ROWCOUNT;
        END;
        SELECT type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete,
            CAST(ordered AS smallint) AS ordered, CAST(notify AS smallint) AS notify, max_active, rate, rate_seconds,
            group_max_active, group_rate, group_rate_seconds, CAST(paused AS smallint) AS paused, CAST(ring AS smallint) AS ring,
            CAST(fair AS smallint) AS fair, CAST(dead_stops_group AS smallint) AS dead_stops_group, @known AS known
        FROM mq.queue
        WHERE type = @name;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

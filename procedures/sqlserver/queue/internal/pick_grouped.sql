-- pick_grouped: take the first messages of groups that are not blocked: one per group in an ordered queue, otherwise as
--     many as the limits per group allow.
-- Arguments: @type, @size, @take (1: called by take_batch; its own commit finishes the messages, perhaps much later),
--     @batch_key
-- Returns: @count: how many rows of mq.claimed now have @batch_key
--
-- In a grouped queue a row of mq.ready is a ticket: the group of this message may have a message to claim. Every
-- message brings a ticket, so senders lock nothing. A ticket is only a hint and is read without keeping a lock. The
-- claim checks whether its group is free under the group's application lock: sp_getapplock for the transaction, with a
-- timeout of 0: it never waits. An application lock needs no row per group, and it is visible when it is tested; a row
-- that is being deleted is not. A call that unblocks a group holds the same lock (free_groups). The claim releases the
-- lock at once if it cannot take the group. So groups are taken one by one: see docs/decisions/0036_one_grouped_claim.md.
--
-- One rule keeps groups from getting stuck: in a group that is not blocked, one message in mq.grouped has its own
-- ticket. A call that unblocks a group issues one after its last scan of the group. Of a blocked group, a claim drops
-- all tickets while it has the first one and its message locked: a cancel cannot remove them then. The first one stays,
-- unless what blocks the group is committed: the claim that blocks it may roll back. Tickets of messages that are not in
-- mq.grouped are dropped; these messages get new tickets when they return. The claim scans the group before it locks
-- the ticket: if a cancel was in progress, it has removed the ticket by then.
--
-- In a fair queue the claim reads the first ticket of each lane, from the lane on where the last claim stopped.
CREATE OR ALTER PROCEDURE mq_internal.pick_grouped
    @type nvarchar(400), @size int, @take bit, @batch_key uniqueidentifier, @count int OUTPUT
AS
BEGIN
    -- The maximum number of groups per call: each keeps a lock until the caller commits.
    DECLARE @groups int = 250;
    -- The most tickets to read. A take leaves the tickets of blocked groups, so it may have to read more.
    DECLARE @tickets int = CASE @take WHEN 1 THEN 100000 ELSE 10000 END;
    -- Dropping tickets costs writes and locks. A few tickets of blocked groups stay, and the next claim reads them again.
    DECLARE @few int = 40;
    -- Messages of a group per statement: far below 5,000 locks, where the server escalates to a table lock.
    DECLARE @step int = 1000;
    DECLARE @ordered bit, @fair bit, @limited bit, @left int = @size, @scanned int = 0, @read int, @n int;
    DECLARE @chunk int = 50 + 2 * CASE WHEN @size < @groups THEN @size ELSE @groups END;
    DECLARE @last_priority int = -32768, @last_lane nvarchar(37) = N'', @last_run_at datetime2(7) = '0001-01-01', @last_id bigint = 0;
    -- The group.
    DECLARE @group_key nvarchar(400), @resource nvarchar(255), @got int, @changed bit, @put_off bit, @want int, @took int;
    DECLARE @weight int, @places int, @had int, @rate int, @seconds int, @tokens int, @full_at datetime2(6), @now datetime2(6);
    DECLARE @first bigint, @before bigint, @last bigint, @head bigint, @attempts smallint, @run_at datetime2(7);
    -- In a fair queue: the position of the priority, what is left of the turn there, and the last lane that was served.
    DECLARE @until nvarchar(37), @wrapped bit, @consumer nvarchar(400), @n_old bigint, @lane_old nvarchar(37), @taken_old int, @round bigint;
    DECLARE @lane nvarchar(37), @rest int = 0, @turn int, @continued bit, @start datetime2(7) = '1900-01-01', @moment datetime2(7);
    DECLARE @served nvarchar(37), @served_round bigint, @served_taken int, @in_round int = 0;
    DECLARE @ticket TABLE (
        n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, id bigint NOT NULL, priority smallint NOT NULL,
        lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL, run_at datetime2(7) NOT NULL, attempts smallint NOT NULL
    );
    -- what: see ticket_state; nth: among the tickets of its group.
    DECLARE @seen TABLE (
        n int NOT NULL PRIMARY KEY, id bigint NOT NULL, priority smallint NOT NULL,
        lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL, run_at datetime2(7) NOT NULL, attempts smallint NOT NULL,
        group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL, what int NOT NULL, nth int NOT NULL
    );
    DECLARE @used TABLE (group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
    -- What a take of a fair queue has of each group, in all rounds: no row of mq.group_lock shows it.
    DECLARE @mine TABLE (group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, took int NOT NULL);
    DECLARE @held TABLE (n int NOT NULL PRIMARY KEY, group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL);
    DECLARE @some mq.items, @taken mq.items, @again mq.items, @heads mq.items, @spent mq.places;
    SET @count = 0;
    SELECT @ordered = ordered, @fair = fair,
        @limited = CASE WHEN ordered = 0 AND (group_max_active > 0 OR EXISTS (
            SELECT * FROM mq.queue_group WITH (READCOMMITTED, FORCESEEK, INDEX (queue_group_lane)) WHERE type = @type AND max_active > 0
        )) THEN 1 ELSE 0 END
    FROM mq_internal.policy(@type);

    WHILE @left > 0 AND @groups > 0 AND @scanned < @tickets
    BEGIN
        DELETE FROM @seen;
        DELETE FROM @spent;
        DELETE FROM @ticket;
        IF @fair = 1 AND @until IS NULL
        BEGIN
            SELECT @n = NULL, @n_old = NULL, @lane_old = NULL, @taken_old = 0, @rest = 0;
            SELECT TOP (1) @n = priority
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority >= @last_priority
            ORDER BY priority;
            IF @n IS NULL
                BREAK;
            SELECT @last_priority = @n, @consumer = CONCAT(N'', @n);
            SELECT TOP (1) @n_old = n, @lane_old = lane, @taken_old = taken
            FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
            WHERE type = @type AND consumer = @consumer
            ORDER BY n DESC, after_id DESC, lane DESC, taken DESC;
            SELECT @until = COALESCE(@lane_old, N'-'), @round = COALESCE(@n_old, 0), @wrapped = 0, @served = NULL, @in_round = 0;
            SET @last_lane = @until;
            IF @taken_old > 0
                SELECT @rest = COALESCE(MAX(weight), 1) - @taken_old
                FROM mq.queue_group WITH (READCOMMITTED, FORCESEEK, INDEX (queue_group_lane))
                WHERE type = @type AND lane = @until AND weight > 1;
            IF @rest > 0
                -- The last claim did not finish this turn.
                INSERT INTO @ticket (id, priority, lane, run_at, attempts)
                SELECT TOP (1) id, priority, lane, run_at, attempts
                FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority = @last_priority AND lane = @until
                ORDER BY priority, lane, run_at, id;
        END;
        IF @fair = 1
        BEGIN
            SET @read = 0;
            WHILE @read < @chunk
            BEGIN
                SET @lane = NULL;
                SELECT TOP (1) @lane = lane, @last_id = id, @last_run_at = run_at, @attempts = attempts
                FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority = @last_priority AND lane > @last_lane
                ORDER BY priority, lane, run_at, id;
                IF @lane IS NULL AND @wrapped = 0
                    SELECT @wrapped = 1, @last_lane = N'';
                -- A round that continues a turn does not come around to it again.
                ELSE IF @lane IS NULL OR (@wrapped = 1 AND (
                    @lane > @until COLLATE Latin1_General_100_BIN2 OR (@rest > 0 AND @lane = @until COLLATE Latin1_General_100_BIN2)
                ))
                    BREAK;
                ELSE
                BEGIN
                    INSERT INTO @ticket (id, priority, lane, run_at, attempts)
                    VALUES (@last_id, @last_priority, @lane, @last_run_at, @attempts);
                    SELECT @read = @read + 1, @last_lane = @lane;
                END;
            END;
        END
        ELSE
        BEGIN
            INSERT INTO @ticket (id, priority, lane, run_at, attempts)
            SELECT TOP (@chunk) id, priority, lane, run_at, attempts
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority >= @last_priority
                AND (priority > @last_priority OR lane > @last_lane
                    OR (lane = @last_lane AND (run_at > @last_run_at OR (run_at = @last_run_at AND id > @last_id))))
            ORDER BY priority, lane, run_at, id;
            SET @read = @@ROWCOUNT;
            IF @read = 0
                BREAK;
            SELECT TOP (1) @last_priority = priority, @last_lane = lane, @last_run_at = run_at, @last_id = id FROM @ticket ORDER BY n DESC;
        END;
        INSERT INTO @seen (n, id, priority, lane, run_at, attempts, group_key, what, nth)
        SELECT t.n, t.id, t.priority, t.lane, t.run_at, t.attempts, s.group_key, s.what,
            ROW_NUMBER() OVER (PARTITION BY s.group_key ORDER BY CASE s.what WHEN 0 THEN 1 ELSE 0 END, t.n)
        FROM @ticket AS t
        CROSS APPLY mq_internal.ticket_state(t.id) AS s
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF @limited = 1
            -- A group without a free place is blocked too.
            UPDATE s
            SET what = 1
            FROM @seen AS s
            INNER JOIN (
                SELECT k.group_key
                FROM (SELECT DISTINCT group_key FROM @seen WHERE what = 2) AS k
                CROSS APPLY mq_internal.group_places(@type, k.group_key) AS p
                WHERE p.places > 0 AND p.taken >= p.places
            ) AS w ON w.group_key = s.group_key
            WHERE s.what = 2;

        SET @n = 0;
        WHILE @left > 0 AND @groups > 0
        BEGIN
            SET @n = (
                SELECT MIN(s.n) FROM @seen AS s
                WHERE s.n > @n AND s.what >= 2 AND s.nth = 1
                    AND NOT EXISTS (SELECT * FROM @used AS u WHERE u.group_key = s.group_key)
            );
            IF @n IS NULL
                BREAK;
            SELECT @group_key = group_key, @lane = lane FROM @seen WHERE n = @n;
            SET @resource = mq_internal.lock_name('group', @type, @group_key);
            EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = 0;
            IF @got < 0
                CONTINUE;
            DELETE FROM @taken;
            SELECT @changed = 0, @put_off = 0, @took = 0, @head = NULL, @first = NULL, @before = NULL, @last = -9223372036854775808,
                @want = CASE WHEN @left < @step THEN @left ELSE @step END;
            SELECT @weight = weight, @places = places, @rate = rate, @seconds = seconds FROM mq_internal.group_limits(@type, @group_key);
            IF @fair = 1
            BEGIN
                -- One turn; the batch is returned in the order of the turns.
                SET @continued = CASE WHEN @rest > 0 AND @lane = @until COLLATE Latin1_General_100_BIN2 THEN 1 ELSE 0 END;
                SET @turn = CASE WHEN @continued = 1 AND @rest < @weight THEN @rest ELSE @weight END;
                SELECT @want = CASE WHEN @turn < @want THEN @turn ELSE @want END, @moment = DATEADD(MICROSECOND, @count, @start);
            END;
            SET @had = COALESCE((SELECT took FROM @mine WHERE group_key = @group_key), 0);
            IF (@places > 0 AND @had >= @places)
                OR EXISTS (SELECT * FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND group_key = @group_key AND blocks = 1)
                SET @want = 0;
            IF @want > 0 AND EXISTS (SELECT * FROM @seen WHERE what = 3 AND group_key = @group_key)
                -- Sent before their sender could see that the queue is grouped. A call that erases a message locks it
                -- first. If this call can lock it and no state table has it, it is not being erased.
                INSERT INTO mq.grouped (type, group_key, id, attempts)
                SELECT m.type, @group_key, m.id, i.attempts
                FROM (SELECT id, MIN(attempts) AS attempts FROM @seen WHERE what = 3 AND group_key = @group_key GROUP BY id) AS i
                INNER JOIN mq.message AS m WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = i.id
                WHERE NOT EXISTS (SELECT * FROM mq.grouped AS g WITH (READUNCOMMITTED) WHERE g.id = i.id)
                    AND NOT EXISTS (SELECT * FROM mq.group_lock AS l WITH (READUNCOMMITTED) WHERE l.id = i.id)
                    AND NOT EXISTS (SELECT * FROM mq.dead AS e WITH (READUNCOMMITTED) WHERE e.id = i.id)
                    AND NOT EXISTS (
                        SELECT * FROM mq.delayed AS d WITH (READUNCOMMITTED)
                        WHERE d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
                    )
                OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            IF @want > 0 AND @ordered = 0
            BEGIN
                EXEC mq_internal.forget_freed @type, @group_key, @changed OUTPUT;
                -- Read without locks: a session that changes these rows holds the group's lock.
                IF @places > 0
                    SELECT @want = CASE WHEN COUNT(*) + @had > @places THEN 0
                        WHEN @places - @had - COUNT(*) < @want THEN @places - @had - COUNT(*) ELSE @want END
                    FROM mq.group_lock WITH (READUNCOMMITTED)
                    WHERE type = @type AND group_key = @group_key AND blocks = 0;
            END;
            IF @want > 0 AND @rate > 0
            BEGIN
                SELECT @now = SYSUTCDATETIME(), @full_at = NULL;
                SELECT @full_at = full_at
                FROM mq.bucket WITH (READUNCOMMITTED, FORCESEEK, INDEX (bucket_pk))
                WHERE type = @type AND group_key = @group_key;
                SET @full_at = COALESCE(@full_at, @now);
                -- The clock was set back, or the limit was changed: the bucket is empty and starts to fill now.
                IF @full_at > DATEADD(SECOND, @seconds, @now)
                BEGIN
                    SELECT @full_at = DATEADD(SECOND, @seconds, @now), @changed = 1;
                    UPDATE b
                    SET full_at = @full_at
                    FROM mq.bucket AS b WITH (ROWLOCK, FORCESEEK, INDEX (bucket_pk))
                    WHERE b.type = @type AND b.group_key = @group_key;
                END;
                SET @tokens = mq_internal.tokens(@full_at, @now, @rate, @seconds);
                IF @tokens = 0
                    SELECT @put_off = 1, @want = 1;
                ELSE IF @tokens < @want
                    SET @want = @tokens;
            END;

            IF @want > 0 AND @ordered = 1
            BEGIN
                SELECT TOP (1) @first = id
                FROM mq.grouped WITH (READUNCOMMITTED)
                WHERE type = @type AND group_key = @group_key
                ORDER BY id;
                -- Skip the group if another transaction is cancelling or purging its first message: that message may
                -- stay and then comes first. Only its old row version shows it. Without row versions this scan waits for
                -- that transaction and for no other.
                IF @first IS NOT NULL
                    SELECT TOP (1) @before = id
                    FROM mq.grouped WITH (ROWLOCK, FORCESEEK, INDEX (grouped_order))
                    WHERE type = @type AND group_key = @group_key AND id < @first
                    ORDER BY id;
                IF @before IS NULL
                    INSERT INTO @taken (id, attempts)
                    SELECT id, attempts
                    FROM mq.grouped WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE id = @first;
                -- Check again: a rollback of a promotion or of a put_back leaves the group unblocked for a moment.
                IF EXISTS (SELECT * FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND group_key = @group_key AND blocks = 1)
                    DELETE FROM @taken;
            END;
            -- In a queue without order, skip messages that others have locked. Read the ids first: rows of mq.grouped are
            -- locked by id only, see issue_tickets.
            WHILE @ordered = 0 AND @last IS NOT NULL AND @took < @want
            BEGIN
                DELETE FROM @some;
                INSERT INTO @some (id, attempts)
                SELECT TOP (@want) id, attempts
                FROM mq.grouped WITH (READUNCOMMITTED)
                WHERE type = @type AND group_key = @group_key AND id > @last
                ORDER BY id;
                SET @last = (SELECT MAX(id) FROM @some);
                INSERT INTO @taken (id, attempts)
                SELECT TOP (@want - @took) g.id, g.attempts
                FROM @some AS s
                INNER JOIN mq.grouped AS g WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON g.id = s.id
                ORDER BY s.id
                OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                SET @took = @took + @@ROWCOUNT;
            END;
            SELECT TOP (1) @head = id, @attempts = attempts FROM @taken ORDER BY id;
            IF @head IS NULL
            BEGIN
                IF @changed = 0
                    EXEC sp_releaseapplock @Resource = @resource, @LockOwner = 'Transaction';
                CONTINUE;
            END;

            INSERT INTO @heads (id, attempts) VALUES (@head, @attempts);
            INSERT INTO @used (group_key) VALUES (@group_key);
            -- A take drops only the tickets that it used: others must not be hidden until it commits.
            IF @take = 1 AND @ordered = 1
                INSERT INTO @spent (priority, lane, run_at, id) SELECT priority, lane, run_at, id FROM @seen WHERE n = @n;
            SET @groups = @groups - 1;
            IF @ordered = 0
            BEGIN
                -- A message that was active before has returned: delete the record of its old place.
                DELETE FROM @again;
                DELETE f
                OUTPUT deleted.id, 0 INTO @again (id, attempts)
                FROM @taken AS t
                INNER JOIN mq.group_freed AS f WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (group_freed_pk))
                    ON f.type = @type AND f.group_key = @group_key AND f.id = t.id
                OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                IF @@ROWCOUNT > 0
                    DELETE l
                    FROM @again AS a
                    INNER JOIN mq.group_lock AS l WITH (ROWLOCK) ON l.id = a.id
                    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            END;
            -- Insert these rows first: they show other sessions what this call has taken. See issue_tickets. A take needs
            -- no row: it leaves the group unblocked, with a ticket. A message without a token waits like a failed one of an
            -- ordered queue: it is delayed, and its row blocks the group until promote.
            IF @take = 0 OR @put_off = 1
                INSERT INTO mq.group_lock (type, group_key, id, blocks)
                SELECT @type, @group_key, id, CASE WHEN @ordered = 1 OR @put_off = 1 THEN 1 ELSE 0 END FROM @taken;
            DELETE g
            FROM @taken AS t
            INNER JOIN mq.grouped AS g WITH (ROWLOCK) ON g.id = t.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            IF @put_off = 1
            BEGIN
                SET @run_at = mq_internal.next_token(@full_at, SYSUTCDATETIME(), @rate, @seconds);
                UPDATE mq.message SET sent_run_at = COALESCE(sent_run_at, run_at), run_at = @run_at WHERE id = @head;
                INSERT INTO mq.delayed (type, run_at, id, priority, attempts)
                SELECT @type, @run_at, @head, priority, @attempts FROM mq.message WHERE id = @head;
                CONTINUE;
            END;
            INSERT INTO mq.claimed (batch_key, id, attempt, priority, run_at)
            SELECT @batch_key, m.id, t.attempts + 1, m.priority, COALESCE(@moment, m.run_at)
            FROM @taken AS t
            INNER JOIN mq.message AS m ON m.id = t.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SET @took = @@ROWCOUNT;
            IF @fair = 1 AND @take = 1
            BEGIN
                DELETE FROM @mine WHERE group_key = @group_key;
                INSERT INTO @mine (group_key, took) VALUES (@group_key, @had + @took);
            END;
            IF @fair = 1 AND @took > 1
                -- Drop all their tickets. Otherwise the next round would find one of them, and no other of the group.
                INSERT INTO @spent (priority, lane, run_at, id)
                SELECT p.priority, p.lane, p.run_at, m.id
                FROM @taken AS t
                INNER JOIN mq.message AS m ON m.id = t.id
                CROSS APPLY mq_internal.place(0, 1, 1, m.priority, m.group_key, m.run_at) AS p
                OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            IF (SELECT COUNT(*) FROM @spent) > @step
            BEGIN
                EXEC mq_internal.drop_tickets @type, @spent;
                DELETE FROM @spent;
            END;
            IF @rate > 0
            BEGIN
                SET @full_at = mq_internal.full_after(@full_at, SYSUTCDATETIME(), @took, @rate, @seconds);
                UPDATE b
                SET full_at = @full_at
                FROM mq.bucket AS b WITH (ROWLOCK, FORCESEEK, INDEX (bucket_pk))
                WHERE b.type = @type AND b.group_key = @group_key;
                IF @@ROWCOUNT = 0
                    INSERT INTO mq.bucket (type, group_key, full_at) VALUES (@type, @group_key, @full_at);
            END;
            SELECT @count = @count + @took, @left = @left - @took, @in_round = @in_round + @took;
            IF @fair = 1
                -- Only a full batch ends in the middle of a turn.
                SELECT @served = @lane, @served_taken = @weight - CASE WHEN @left = 0 THEN @turn - @took ELSE 0 END,
                    @served_round = @round + CASE WHEN @continued = 0 AND @lane <= @until COLLATE Latin1_General_100_BIN2 THEN 1 ELSE 0 END;
        END;

        -- Drop tickets that stand for nothing. In an ordered queue also drop all tickets read of the groups claimed just
        -- now, or every claim reads all tickets of a long group. In other queues drop those of the messages that were taken
        -- or delayed.
        INSERT INTO @spent (priority, lane, run_at, id)
        SELECT s.priority, s.lane, s.run_at, s.id
        FROM @seen AS s
        LEFT JOIN @used AS u ON u.group_key = s.group_key
        WHERE s.what = 0 OR (s.what = 2 AND @take = 0 AND @ordered = 1 AND u.group_key IS NOT NULL)
        EXCEPT
        SELECT priority, lane, run_at, id FROM @spent;
        IF @ordered = 0
            INSERT INTO @spent (priority, lane, run_at, id)
            SELECT s.priority, s.lane, s.run_at, s.id
            FROM @seen AS s
            WHERE s.what > 0 AND (
                EXISTS (SELECT * FROM mq.claimed AS c WHERE c.batch_key = @batch_key AND c.id = s.id)
                OR EXISTS (SELECT * FROM @heads AS h WHERE h.id = s.id)
            )
            EXCEPT
            SELECT priority, lane, run_at, id FROM @spent;
        IF @take = 0 AND (SELECT COUNT(*) FROM @seen WHERE what = 1) > @few
        BEGIN
            DELETE FROM @held;
            INSERT INTO @held (n, group_key)
            SELECT k.n, k.group_key
            FROM @seen AS k
            INNER JOIN mq.ready AS r WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                ON r.type = @type AND r.priority = k.priority AND r.lane = k.lane AND r.run_at = k.run_at AND r.id = k.id
            INNER JOIN mq.grouped AS g WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON g.id = k.id
            WHERE k.what = 1 AND k.nth = 1
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            INSERT INTO @spent (priority, lane, run_at, id)
            SELECT s.priority, s.lane, s.run_at, s.id
            FROM @held AS h
            INNER JOIN @seen AS s ON s.group_key = h.group_key AND s.what = 1
            WHERE s.n <> h.n OR EXISTS (
                SELECT * FROM mq.group_lock WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND group_key = h.group_key AND blocks = 1
            )
            EXCEPT
            SELECT priority, lane, run_at, id FROM @spent;
        END;
        IF EXISTS (SELECT * FROM @spent)
            EXEC mq_internal.drop_tickets @type, @spent;

        SET @scanned = @scanned + @read;
        IF @fair = 1 AND (@left = 0 OR @groups = 0 OR @scanned >= @tickets OR @read < @chunk)
        BEGIN
            IF @served IS NOT NULL
                EXEC mq_internal.save_position @type, @consumer, @served_round, 0, @served, @served_taken, @n_old, 0, @lane_old;
            -- The round is complete. Groups that have a place left get another turn, else the next priority comes.
            DELETE FROM @used;
            IF @ordered = 1 OR @in_round = 0
                SET @last_priority = @last_priority + 1;
            SET @until = NULL;
        END
        ELSE IF @fair = 0 AND @read < @chunk
            BREAK;
        SET @chunk = 1000;
    END;

    -- Do this after the spent tickets are deleted. Read now whether the group is blocked: a call that frees a place from
    -- now on issues a ticket itself, because it finds that ours are deleted.
    IF @take = 0 AND @limited = 1 AND @count > 0
        DELETE h
        FROM @heads AS h
        INNER JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = h.id
        CROSS APPLY mq_internal.group_places(@type, COALESCE(m.group_key, N'')) AS p
        WHERE p.places > 0 AND p.taken >= p.places;
    IF (@take = 1 OR @ordered = 0) AND @count > 0
        EXEC mq_internal.issue_tickets @type, @heads, @take;
END;

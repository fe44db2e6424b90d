-- pick_grouped: take the first messages of groups that are not blocked: one per group in an ordered queue, otherwise as
--     many as the limits per group allow.
-- Arguments: @type, @size, @take (1: called by take_batch; its own commit finishes the messages, perhaps much later),
--     @batch_key
-- Returns: @count: how many rows of mq.claimed now have @batch_key
--
-- In a grouped queue a row of mq.ready is a ticket: the group of this message may have a message to claim. Every
-- message brings a ticket, so senders lock nothing. A ticket is only a hint and is read without keeping a lock. The
-- claim checks whether its group is free under the group's application lock: sp_getapplock for the transaction, with a
-- timeout of 0, so that it never waits. An application lock needs no row per group, and it is visible when it is
-- tested; a row that is being deleted is not. A call that unblocks a group holds the same lock (free_groups). The claim
-- releases the lock at once if it cannot take the group.
--
-- One rule keeps groups from getting stuck: in a group that is not blocked, one message in mq.grouped has its own
-- ticket. A call that unblocks a group issues one after its last scan of the group. Of a blocked group, a claim drops
-- all tickets while it has the first one and its message locked: a cancel cannot remove them then. The first one stays,
-- unless what blocks the group is committed: the claim that blocks it may roll back. Tickets of messages that are not
-- in mq.grouped are dropped; these messages get new tickets when they return. The claim scans the group before it locks
-- the ticket: if a cancel was in progress, it has removed the ticket by then.
CREATE OR ALTER PROCEDURE mq_internal.pick_grouped
    @type nvarchar(400),
    @size int,
    @take bit,
    @batch_key uniqueidentifier,
    @count int OUTPUT
AS
BEGIN
    -- The maximum number of groups per call: each keeps a lock until the caller commits.
    DECLARE @groups int = 250;
    -- The most tickets to read. A take leaves the tickets of blocked groups, so it may have to read more.
    DECLARE @tickets int = CASE @take WHEN 1 THEN 100000 ELSE 10000 END;
    -- Dropping tickets costs writes and locks. A few tickets of blocked groups stay, and the next claim reads them again.
    DECLARE @few int = 40;
    DECLARE @ordered bit, @fair bit, @limited bit, @left int = @size, @start datetime2(7) = '1900-01-01', @moment datetime2(7);
    DECLARE @chunk int = 50 + 2 * CASE WHEN @size < @groups THEN @size ELSE @groups END, @scanned int = 0, @chunk_read int, @read int, @n int, @want int;
    DECLARE @last_priority int = -32768, @last_lane nvarchar(37) = N'', @last_run_at datetime2(7) = '0001-01-01', @last_id bigint = 0;
    DECLARE @group_key nvarchar(400), @priority smallint, @lane nvarchar(37), @run_at datetime2(7), @head bigint, @attempts smallint, @took int;
    DECLARE @seen TABLE (
        n int NOT NULL PRIMARY KEY,
        id bigint NOT NULL,
        priority smallint NOT NULL,
        lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL,
        run_at datetime2(7) NOT NULL,
        attempts smallint NOT NULL,
        group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
        what int NOT NULL,
        nth int NOT NULL
    );
    DECLARE @ticket TABLE (
        n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, id bigint NOT NULL, priority smallint NOT NULL,
        lane nvarchar(37) COLLATE Latin1_General_100_BIN2 NOT NULL, run_at datetime2(7) NOT NULL, attempts smallint NOT NULL
    );
    -- In a fair queue: the position of the priority, and the last lane that was served.
    DECLARE @until nvarchar(37), @wrapped bit = 0, @reader nvarchar(400), @n_old bigint, @lane_old nvarchar(37), @round bigint;
    DECLARE @served nvarchar(37), @served_round bigint, @in_round int = 0;
    DECLARE @used TABLE (group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @held TABLE (n int NOT NULL PRIMARY KEY, group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL);
    DECLARE @late mq.items, @heads mq.items, @spent mq.places;
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
        SET @chunk_read = @chunk;
        IF @fair = 1 AND @until IS NULL
        BEGIN
            SET @priority = NULL;
            SELECT TOP (1) @priority = priority
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority >= @last_priority
            ORDER BY priority;
            IF @priority IS NULL
                BREAK;
            SELECT @last_priority = @priority, @reader = CONCAT(N'', @priority), @n_old = NULL, @lane_old = NULL;
            SELECT TOP (1) @n_old = n, @lane_old = lane
            FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
            WHERE type = @type AND reader = @reader
            ORDER BY n DESC, after_id DESC, lane DESC, taken DESC;
            SELECT @until = COALESCE(@lane_old, N'-'), @round = COALESCE(@n_old, 0), @wrapped = 0, @served = NULL, @in_round = 0;
            SET @last_lane = @until;
        END;
        IF @fair = 1
            INSERT INTO @ticket (id, priority, lane, run_at, attempts)
            SELECT id, @last_priority, lane, run_at, attempts
            FROM mq_internal.next_lanes(@type, @last_priority, @last_lane, @wrapped, @until, @chunk)
            ORDER BY n;
        ELSE
            INSERT INTO @ticket (id, priority, lane, run_at, attempts)
            SELECT TOP (@chunk) id, priority, lane, run_at, attempts
            FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type AND priority >= @last_priority
                AND (priority > @last_priority OR lane > @last_lane
                    OR (lane = @last_lane AND (run_at > @last_run_at OR (run_at = @last_run_at AND id > @last_id))))
            ORDER BY priority, lane, run_at, id;
        SET @read = @@ROWCOUNT;
        IF @read = 0 AND @fair = 0
            BREAK;
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
            SELECT @group_key = group_key, @priority = priority, @lane = lane, @run_at = run_at, @want = @left FROM @seen WHERE n = @n;
            DELETE FROM @late;
            INSERT INTO @late (id, attempts)
            SELECT id, MIN(attempts) FROM @seen WHERE what = 3 AND group_key = @group_key GROUP BY id;
            IF @fair = 1
            BEGIN
                -- One turn; the batch is returned in the order of the turns.
                SELECT @want = CASE WHEN weight < @left THEN weight ELSE @left END FROM mq_internal.group_limits(@type, @group_key);
                SET @moment = DATEADD(MICROSECOND, @count, @start);
            END;
            EXEC mq_internal.take_group @type, @group_key, @take, @late, @want, @priority, @run_at, @batch_key, @ordered, @moment,
                @head OUTPUT, @attempts OUTPUT, @took OUTPUT;
            IF @head IS NULL
                CONTINUE;
            INSERT INTO @heads (id, attempts) VALUES (@head, @attempts);
            SELECT @count = @count + @took, @left = @left - @took, @groups = @groups - 1, @in_round = @in_round + @took;
            IF @fair = 1 AND @took > 0
                SELECT @served = @lane, @served_round = @round + CASE WHEN @lane <= @until COLLATE Latin1_General_100_BIN2 THEN 1 ELSE 0 END;
            INSERT INTO @used (group_key) VALUES (@group_key);
            -- A take drops only the tickets that it used: others must not be hidden until it commits.
            IF @take = 1 AND @ordered = 1
                INSERT INTO @spent (priority, lane, run_at, id) SELECT priority, lane, run_at, id FROM @seen WHERE n = @n;
        END;

        -- Drop tickets that stand for nothing. In an ordered queue also drop all tickets read of the groups claimed just
        -- now, or every claim reads all tickets of a long group. In other queues drop those of the messages that were taken
        -- or delayed.
        INSERT INTO @spent (priority, lane, run_at, id)
        SELECT s.priority, s.lane, s.run_at, s.id
        FROM @seen AS s
        LEFT JOIN @used AS u ON u.group_key = s.group_key
        WHERE s.what = 0 OR (s.what = 2 AND @take = 0 AND @ordered = 1 AND u.group_key IS NOT NULL);
        IF @ordered = 0
            INSERT INTO @spent (priority, lane, run_at, id)
            SELECT s.priority, s.lane, s.run_at, s.id
            FROM @seen AS s
            WHERE s.what > 0 AND (
                EXISTS (SELECT * FROM mq.claimed AS c WHERE c.batch_key = @batch_key AND c.id = s.id)
                OR EXISTS (SELECT * FROM @heads AS h WHERE h.id = s.id)
            );
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
            );
        END;
        IF EXISTS (SELECT * FROM @spent)
            EXEC mq_internal.drop_tickets @type, @spent;

        IF @fair = 0 AND @read < @chunk
            BREAK;
        SELECT TOP (1) @last_priority = priority, @last_lane = lane, @last_run_at = run_at, @last_id = id FROM @seen ORDER BY n DESC;
        IF @last_lane <= @until COLLATE Latin1_General_100_BIN2
            SET @wrapped = 1;
        SELECT @scanned = @scanned + @read, @chunk = 1000;
        IF @fair = 1 AND (@left = 0 OR @groups = 0 OR @scanned >= @tickets OR @read < @chunk_read)
        BEGIN
            IF @served IS NOT NULL
                EXEC mq_internal.save_position @type, @reader, @served_round, 0, @served, 0, @n_old, 0, @lane_old;
            -- The round is complete. Groups that have a place left get another turn, else the next priority comes.
            DELETE FROM @used;
            IF @ordered = 1 OR @in_round = 0
                SET @last_priority = @last_priority + 1;
            SET @until = NULL;
        END;
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

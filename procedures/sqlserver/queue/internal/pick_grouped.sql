-- pick_grouped: take the first messages of groups that are not blocked: one per group in an ordered queue, otherwise as
--               many as the limits per group allow.
-- Arguments:   @type, @size, @take (1: called by take_batch; its own commit finishes the messages, perhaps much later),
--              @batch_key
-- Returns:     @count: how many rows of mq.claimed now have @batch_key
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
--
-- In a grouped queue a row of mq.ready is a ticket: the group of this message may have a message to claim. Every message
-- brings a ticket, so senders lock nothing. A ticket is only a hint and is read without keeping a lock. The claim checks
-- whether its group is free under the group's application lock: sp_getapplock for the transaction, with a timeout of 0, so
-- that it never waits. An application lock needs no row per group, and it is visible when it is tested; a row that is being
-- deleted is not. A call that unblocks a group holds the same lock (free_groups). The claim releases the lock at once if it
-- cannot take the group.
--
-- One rule keeps groups from getting stuck: in a group that is not blocked, one message in mq.grouped has its own ticket. A
-- call that unblocks a group issues one after its last scan of the group. Of a blocked group, a claim drops all tickets
-- except the first, while it has that ticket and its message locked: a cancel cannot remove them then. Tickets of messages
-- that are not in mq.grouped are dropped; these messages get new tickets when they return. The claim scans the group before
-- it locks the ticket: if a cancel was in progress, it has removed the ticket by then.

CREATE OR ALTER PROCEDURE mq_internal.pick_grouped
    @type nvarchar(400),
    @size int,
    @take bit,
    @batch_key uniqueidentifier,
    @count int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- The maximum number of groups per call: each keeps a lock until the caller commits.
    DECLARE @groups int = 250;
    DECLARE @tickets int = 10000;
    -- Dropping tickets costs writes and locks. A few tickets of blocked groups stay, and the next claim reads them again.
    DECLARE @few int = 40;
    DECLARE @ordered bit, @places int, @rate int, @seconds int;
    DECLARE @left int = @size;
    DECLARE @chunk int = 50 + 2 * CASE WHEN @size < @groups THEN @size ELSE @groups END, @scanned int = 0, @read int, @n int;
    DECLARE @last_priority int = -32769, @last_run_at datetime2(7) = '0001-01-01', @last_id bigint = 0;
    DECLARE @group_key nvarchar(400), @priority smallint, @run_at datetime2(7), @head bigint, @attempts smallint, @took int;
    DECLARE @seen TABLE (
        n int NOT NULL PRIMARY KEY,
        id bigint NOT NULL,
        priority smallint NOT NULL,
        run_at datetime2(7) NOT NULL,
        attempts smallint NOT NULL,
        group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
        what int NOT NULL,
        nth int NOT NULL
    );
    DECLARE @used TABLE (group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @late mq.items, @heads mq.items, @spent mq.places;
    SET @count = 0;
    SELECT @ordered = ordered, @places = CASE ordered WHEN 1 THEN 1 ELSE group_max_active END, @rate = group_rate,
        @seconds = group_rate_seconds
    FROM mq_internal.policy(@type);

    WHILE @left > 0 AND @groups > 0 AND @scanned < @tickets
    BEGIN
        DELETE FROM @seen;
        DELETE FROM @spent;
        INSERT INTO @seen (n, id, priority, run_at, attempts, group_key, what, nth)
        SELECT n, id, priority, run_at, attempts, group_key, what, nth
        FROM mq_internal.tickets(@type, @take, @chunk, @last_priority, @last_run_at, @last_id)
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SET @read = @@ROWCOUNT;
        IF @read = 0
            BREAK;
        IF @ordered = 0 AND @places > 0
            -- A group without a free place is blocked too.
            UPDATE s
            SET what = 1
            FROM @seen AS s
            INNER JOIN (
                SELECT k.group_key
                FROM (SELECT DISTINCT group_key FROM @seen WHERE what = 2) AS k
                CROSS APPLY mq_internal.group_places(@type, k.group_key) AS p
                WHERE p.taken >= @places
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
            SELECT @group_key = group_key, @priority = priority, @run_at = run_at FROM @seen WHERE n = @n;
            DELETE FROM @late;
            INSERT INTO @late (id, attempts)
            SELECT id, MIN(attempts) FROM @seen WHERE what = 3 AND group_key = @group_key GROUP BY id;
            EXEC mq_internal.take_group @type, @group_key, @take, @late, @left, @priority, @run_at, @batch_key, @ordered, @places, @rate,
                @seconds, @head OUTPUT, @attempts OUTPUT, @took OUTPUT;
            IF @head IS NULL
                CONTINUE;
            INSERT INTO @used (group_key) VALUES (@group_key);
            INSERT INTO @heads (id, attempts) VALUES (@head, @attempts);
            SELECT @count = @count + @took, @left = @left - @took, @groups = @groups - 1;
            -- A take drops only the tickets that it used: others must not be hidden until it commits.
            IF @take = 1 AND @ordered = 1
                INSERT INTO @spent (priority, run_at, id) SELECT priority, run_at, id FROM @seen WHERE n = @n;
        END;

        -- Drop tickets that stand for nothing. In an ordered queue also drop all tickets read of the groups claimed just
        -- now, or every claim reads all tickets of a long group. In other queues drop those of the messages that were taken
        -- or delayed.
        INSERT INTO @spent (priority, run_at, id)
        SELECT s.priority, s.run_at, s.id
        FROM @seen AS s
        LEFT JOIN @used AS u ON u.group_key = s.group_key
        WHERE s.what = 0 OR (s.what = 2 AND @take = 0 AND @ordered = 1 AND u.group_key IS NOT NULL);
        IF @ordered = 0
            INSERT INTO @spent (priority, run_at, id)
            SELECT s.priority, s.run_at, s.id
            FROM @seen AS s
            WHERE s.what > 0 AND (
                EXISTS (SELECT * FROM mq.claimed AS c WHERE c.batch_key = @batch_key AND c.id = s.id)
                OR EXISTS (SELECT * FROM @heads AS h WHERE h.id = s.id)
            );
        IF @take = 0 AND (SELECT COUNT(*) FROM @seen WHERE what = 1 AND nth > 1) > @few
            INSERT INTO @spent (priority, run_at, id)
            SELECT s.priority, s.run_at, s.id
            FROM @seen AS k
            INNER JOIN mq.ready AS r WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                ON r.type = @type AND r.priority = k.priority AND r.run_at = k.run_at AND r.id = k.id
            INNER JOIN mq.grouped AS g WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON g.id = k.id
            INNER JOIN @seen AS s ON s.group_key = k.group_key AND s.what = 1 AND s.nth > 1
            WHERE k.what = 1 AND k.nth = 1
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF EXISTS (SELECT * FROM @spent)
            EXEC mq_internal.drop_tickets @type, @spent;

        IF @read < @chunk
            BREAK;
        SELECT @last_priority = priority, @last_run_at = run_at, @last_id = id FROM @seen WHERE n = @read;
        SELECT @scanned = @scanned + @read, @chunk = 1000;
    END;

    -- Do this after the spent tickets are deleted. Read now whether the group is blocked: a call that frees a place from
    -- now on issues a ticket itself, because it finds that ours are deleted.
    IF @take = 0 AND @ordered = 0 AND @places > 0 AND @count > 0
        DELETE h
        FROM @heads AS h
        INNER JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = h.id
        CROSS APPLY mq_internal.group_places(@type, COALESCE(m.group_key, N'')) AS p
        WHERE p.taken >= @places;
    IF (@take = 1 OR @ordered = 0) AND @count > 0
        EXEC mq_internal.issue_tickets @type, @heads, @take;
END;
GO

-- pick_grouped: take the first messages of groups that may go on, in an ordered queue or one with limits by group.
-- Arguments:   @type, @size, @take (1: the messages are finished by the caller's own commit), @batch_key
-- Returns:     @count: how many rows of mq.claimed have that key now
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.pick_grouped N'invoice', 10, 0, @batch_key, @count OUTPUT;
--
-- A row of mq.ready is a ticket here: 'the group of this message has something to do', and every message brings one, so that
-- senders lock nothing. A ticket is only a hint, and is read without keeping a lock. Whether its group is free is checked under
-- the group's application lock: sp_getapplock for the transaction, with a timeout of 0, so that nobody waits for it. It is not a
-- row, so it needs none for each group that may ever come, and it is seen by a test, which a row that is being deleted is not.
-- A call that frees a group holds that lock as well (free_groups). It is released at once when the group cannot be taken.
--
-- No group gets stuck, because of this rule: of a group that is free, one message in mq.grouped has a ticket of its own. The call that
-- ends a group's work issues one, after its last scan of the group. Of a group at work a claim drops all tickets but the first, while
-- it holds that one and its message, so that no cancel can take it away. Tickets of messages that are not in mq.grouped are dropped:
-- such messages get new ones when they return. The scan comes before the lock of the ticket: a cancel has had the ticket by then.

CREATE OR ALTER PROCEDURE mq.pick_grouped
    @type nvarchar(400),
    @size int,
    @take bit,
    @batch_key uniqueidentifier,
    @count int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Each group costs a lock until the caller commits.
    DECLARE @groups int = 250;
    DECLARE @tickets int = 10000;
    -- Dropping costs writes and locks: a few tickets of groups at work are scanned again by the next claim.
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
    FROM mq.policy(@type);

    WHILE @left > 0 AND @groups > 0 AND @scanned < @tickets
    BEGIN
        DELETE FROM @seen;
        DELETE FROM @spent;
        INSERT INTO @seen (n, id, priority, run_at, attempts, group_key, what, nth)
        SELECT n, id, priority, run_at, attempts, group_key, what, nth
        FROM mq.tickets(@type, @take, @chunk, @last_priority, @last_run_at, @last_id)
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SET @read = @@ROWCOUNT;
        IF @read = 0
            BREAK;
        IF @ordered = 0 AND @places > 0
            -- Groups without a free place are at work as well.
            UPDATE s
            SET what = 1
            FROM @seen AS s
            INNER JOIN (
                SELECT k.group_key
                FROM (SELECT DISTINCT group_key FROM @seen WHERE what = 2) AS k
                CROSS APPLY mq.group_places(@type, k.group_key) AS p
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
            EXEC mq.take_group @type, @group_key, @take, @late, @left, @priority, @run_at, @batch_key, @ordered, @places, @rate,
                @seconds, @head OUTPUT, @attempts OUTPUT, @took OUTPUT;
            IF @head IS NULL
                CONTINUE;
            INSERT INTO @used (group_key) VALUES (@group_key);
            INSERT INTO @heads (id, attempts) VALUES (@head, @attempts);
            SELECT @count = @count + @took, @left = @left - @took, @groups = @groups - 1;
            -- A take drops only the tickets that led it there: the others must not be hidden until it commits.
            IF @take = 1 AND @ordered = 1
                INSERT INTO @spent (priority, run_at, id) SELECT priority, run_at, id FROM @seen WHERE n = @n;
        END;

        -- What stands for nothing, and in an ordered queue all that were seen of the groups claimed just now, or a long group would be
        -- scanned each time; else those of the messages that were taken or put off.
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
            EXEC mq.drop_tickets @type, @spent;

        IF @read < @chunk
            BREAK;
        SELECT @last_priority = priority, @last_run_at = run_at, @last_id = id FROM @seen WHERE n = @read;
        SELECT @scanned = @scanned + @read, @chunk = 1000;
    END;

    -- After the spent tickets are gone. Whether a group can go on is read now: a call that frees a place of it from now on issues a
    -- ticket itself, and finds that ours are gone.
    IF @take = 0 AND @ordered = 0 AND @places > 0 AND @count > 0
        DELETE h
        FROM @heads AS h
        INNER JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = h.id
        CROSS APPLY mq.group_places(@type, COALESCE(m.group_key, N'')) AS p
        WHERE p.taken >= @places;
    IF (@take = 1 OR @ordered = 0) AND @count > 0
        EXEC mq.issue_tickets @type, @heads, @take;
END;
GO

-- pick: move up to @size ready messages of a type from the ready table under a batch key, in claim order; expired claims are
--       rescued and due messages promoted on the way.
-- Arguments:   @type, @size, @take (1: the caller's transaction may be long: see pick_ordered), @batch_key
-- Returns:     @count: how many rows of mq.claimed have that key now
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.pick N'email', 10, 0, @batch_key, @count OUTPUT;
--
-- Low-water marks. What is deleted stays in the index until the ghost cleanup comes by, and under row versioning as long as a
-- snapshot is open, and a claim that begins at the front walks all of it. So a claim begins where the claims before it began to
-- find something, one place for each priority, kept in mq.mark. Rows may appear below a mark: a transaction that commits late, a
-- take that rolls back. So no claim begins later than one second ago, for senders that are about to commit, and the first claim
-- of every second looks from the very start; after a look that took long, where the dead are many, the next one waits ten times
-- as long, at most 5 seconds. What is put back on purpose calls lower_mark.
--
-- Locks. READPAST passes over rows that others have locked, and a look for anything else must not wait for them either: whoever
-- reads marks, batches or delayed messages here passes over the locked ones. READCOMMITTEDLOCK, because under
-- READ_COMMITTED_SNAPSHOT READPAST would do nothing. At most 1,000 rows a statement, far from the 5,000 locks at which this
-- server locks the whole table instead.
--
-- Plans. FORCE ORDER and LOOP JOIN leave one plan: a seek into the primary key, in its order, and a seek for each row found.
-- KEEPFIXED PLAN, because a table that fills and empties all the time outdates its statistics all the time, and each time the
-- server would read samples of it and compile the statement again, to no other plan.

CREATE OR ALTER PROCEDURE mq.pick
    @type nvarchar(400),
    @size int,
    @take bit,
    @batch_key uniqueidentifier,
    @count int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- A mark is renewed when the front has moved by so many ids.
    DECLARE @stride bigint = 1000;
    -- Priorities beyond the first eight are claimed without marks.
    DECLARE @marks int = 8;
    DECLARE @step int = 1000;
    DECLARE @long_ago datetime2(7) = '1900-01-01';
    DECLARE @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @second_ago datetime2(7) = DATEADD(SECOND, -1, @now);
    DECLARE @ordered bit, @full bit = 1, @write bit = 0, @learn bit = 0, @all_promoted bit = 1;
    DECLARE @n bigint, @looked_at datetime2(7), @promoted_to datetime2(7) = @long_ago;
    DECLARE @rescued bigint, @moved int, @promote int, @known int = 0, @found int, @left int = @size, @top int;
    DECLARE @above int = -32769, @priority int, @run_at datetime2(7), @id bigint, @from datetime2(7), @from_id bigint;
    DECLARE @first_run_at datetime2(7), @first_id bigint, @took int;
    DECLARE @place TABLE (priority smallint PRIMARY KEY, run_at datetime2(7) NOT NULL, id bigint NOT NULL);

    SET @count = 0;
    SELECT TOP (1) @ordered = ordered FROM mq.queue WHERE type IN (@type, N'') ORDER BY LEN(type) DESC;
    SELECT TOP (1) @n = n, @looked_at = looked_at, @promoted_to = promoted_to
    FROM mq.mark WITH (READPAST, READCOMMITTEDLOCK)
    WHERE type = @type
    ORDER BY n DESC;
    -- The time of a look may lie up to 5 seconds ahead; more, or a promotion ahead, means that the clock was set back.
    IF @now BETWEEN DATEADD(SECOND, -5, @looked_at) AND DATEADD(SECOND, 1, @looked_at) AND @promoted_to <= @now
        SET @full = 0;

    IF @full = 1
    BEGIN
        IF EXISTS (
            SELECT * FROM mq.batch WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @now
        )
        BEGIN
            SET @top = CASE WHEN @take = 1 THEN 1 ELSE 20 END;
            EXEC mq.rescue @type, @top, @rescued OUTPUT;
        END;
        SET @promoted_to = @long_ago;
    END
    -- Two claims may have left marks of one number: the first place of a priority counts. A full look does not begin at them, but
    -- leaves them to the priorities of which it finds nothing.
    INSERT INTO @place (priority, run_at, id)
    SELECT priority, run_at, id
    FROM (
        SELECT priority, run_at, id, ROW_NUMBER() OVER (PARTITION BY priority ORDER BY run_at, id) AS nth
        FROM mq.mark WITH (READPAST, READCOMMITTEDLOCK)
        WHERE type = @type AND n = @n
    ) AS p
    WHERE nth = 1;

    IF EXISTS (
        SELECT * FROM mq.delayed WITH (READPAST, READCOMMITTEDLOCK)
        WHERE type = @type AND run_at > @promoted_to AND run_at <= @now
    )
    BEGIN
        -- What a take promotes stays hidden from others until its commit: no more than it may want itself.
        SET @promote = CASE WHEN @take = 1 THEN @size WHEN 2 * @size > 100 THEN 2 * @size ELSE 100 END;
        EXEC mq.promote @type, @promoted_to, @now, @promote, @ordered, @moved OUTPUT, @first_run_at OUTPUT;
        IF @moved >= @promote
            SET @all_promoted = 0;
        -- What has become due before the place of a mark lowers that mark.
        UPDATE @place SET run_at = @first_run_at, id = 0 WHERE run_at >= @first_run_at;
        IF @@ROWCOUNT > 0
            SET @write = 1;
    END;

    IF @ordered = 1
    BEGIN
        EXEC mq.pick_ordered @type, @size, @take, @batch_key, @count OUTPUT;
        IF @full = 1 AND @count > 0
        BEGIN
            INSERT INTO mq.mark (type, n, priority, run_at, id, looked_at, promoted_to)
            VALUES (@type, COALESCE(@n, 0) + 1, 0, @long_ago, 0, @now, @long_ago);
            EXEC mq.drop_marks @type, @n;
        END;
        RETURN;
    END;

    -- Known priorities begin at their marks, the gaps between them at their start; a full look is one wide gap.
    SELECT @known = COUNT(*) FROM @place;
    WHILE @left > 0 AND @above < 32768
    BEGIN
        SET @priority = NULL;
        IF @full = 0
            SELECT TOP (1) @priority = priority, @run_at = run_at, @id = id FROM @place WHERE priority > @above ORDER BY priority;
        SET @priority = COALESCE(@priority, 32768);
        SET @took = 1;
        WHILE @left > 0 AND @took > 0 AND @priority - @above > 1
        BEGIN
            SET @top = CASE WHEN @left < @step THEN @left ELSE @step END;
            DELETE r
            OUTPUT @batch_key, deleted.id, deleted.attempts + 1, deleted.priority, deleted.run_at
            INTO mq.claimed (batch_key, id, attempt, priority, run_at)
            FROM (
                SELECT TOP (@top) type, priority, run_at, id
                FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @type AND priority > @above AND priority < @priority
                ORDER BY priority, run_at, id
            ) AS f
            INNER JOIN mq.ready AS r WITH (ROWLOCK)
                ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SET @took = @@ROWCOUNT;
            SET @left = @left - @took;
            IF @took > 0 AND @full = 1
                SET @write = 1;
            -- A priority that has no mark yet gets one from the full look of the next claim.
            IF @took > 0 AND @full = 0 AND @known < @marks
                SET @learn = 1;
            IF @took < @top
                SET @took = 0;
        END;
        IF @priority < 32768 AND @left > 0
        BEGIN
            SET @from = CASE WHEN @run_at < @second_ago THEN @run_at ELSE @second_ago END;
            SET @from_id = CASE WHEN @from = @run_at THEN @id ELSE -9223372036854775808 END;
            SET @took = 1;
            WHILE @left > 0 AND @took > 0
            BEGIN
                SET @top = CASE WHEN @left < @step THEN @left ELSE @step END;
                DELETE r
                OUTPUT @batch_key, deleted.id, deleted.attempts + 1, deleted.priority, deleted.run_at
                INTO mq.claimed (batch_key, id, attempt, priority, run_at)
                FROM (
                    SELECT TOP (@top) type, priority, run_at, id
                    FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                    WHERE type = @type AND priority = @priority AND run_at >= @from AND (run_at > @from OR id >= @from_id)
                    ORDER BY priority, run_at, id
                ) AS f
                INNER JOIN mq.ready AS r WITH (ROWLOCK)
                    ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
                OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                SET @took = @@ROWCOUNT;
                SET @left = @left - @took;
                IF @took < @top
                    SET @took = 0;
            END;
        END;
        SET @above = @priority;
    END;
    SET @count = @size - @left;

    -- The first that was found of each priority is its place now.
    IF @count > 0
    BEGIN
        SELECT @found = COUNT(*)
        FROM @place AS p
        INNER JOIN (
            SELECT priority, MIN(id) AS id FROM mq.claimed WHERE batch_key = @batch_key GROUP BY priority
        ) AS c ON c.priority = p.priority
        WHERE c.id NOT BETWEEN p.id - @stride AND p.id + @stride;
        IF @found > 0
            SET @write = 1;
    END;
    IF @write = 1 OR @learn = 1
    BEGIN
        DELETE p
        FROM @place AS p
        WHERE p.priority IN (SELECT c.priority FROM mq.claimed AS c WHERE c.batch_key = @batch_key);
        INSERT INTO @place (priority, run_at, id)
        SELECT priority, run_at, id
        FROM (
            SELECT priority, run_at, id, ROW_NUMBER() OVER (PARTITION BY priority ORDER BY run_at, id) AS nth
            FROM mq.claimed
            WHERE batch_key = @batch_key
        ) AS c
        WHERE nth = 1;
    END
    ELSE IF @full = 1 AND @count = 0 AND EXISTS (SELECT * FROM @place) AND SYSUTCDATETIME() > DATEADD(MILLISECOND, 5, @now)
    BEGIN
        -- Nothing there but many dead rows to walk: idle consumers need not do it all the time.
        UPDATE @place SET run_at = @now, id = 0;
        SET @write = 1;
    END;
    IF @write = 1 OR @learn = 1
    BEGIN
        SET @moved = 10 * DATEDIFF(MILLISECOND, @now, SYSUTCDATETIME());
        INSERT INTO mq.mark (type, n, priority, run_at, id, looked_at, promoted_to)
        SELECT TOP (@marks) @type, COALESCE(@n, 0) + 1, priority, run_at, id,
            CASE
                WHEN @learn = 1 THEN @long_ago
                WHEN @full = 1 THEN DATEADD(MILLISECOND, CASE WHEN @moved > 5000 THEN 5000 ELSE @moved END, @now)
                ELSE @looked_at
            END,
            CASE WHEN @all_promoted = 1 THEN @now ELSE @long_ago END
        FROM @place
        ORDER BY priority;
        EXEC mq.drop_marks @type, @n;
    END;
END;
GO

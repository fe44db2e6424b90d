-- claim_wraparound: claim the next messages round the ring of ids.
-- Arguments:   @type, @size (1 to 10,000; NULL: 1), @reader (NULL: the application name), @lease_seconds (NULL: the queue's),
--              @after_id (NULL: where this reader stopped)
-- Returns:     the messages after @after_id in order of id, then those from the lowest id on; none twice
-- Errors:      50002 invalid_argument, 50003 queue_is_ordered
-- Transaction: joins the caller's; never waits for another claim
-- Example:     EXEC mq.claim_wraparound N'crawl', 10, N'worker-1';
--
-- An index by id would cost every other queue as much again as its claims. Instead, the first call that finds something makes
-- the type a ring: its messages stand in mq.ready at one priority and one run_at, so that the order of its key is that of the
-- ids, for claim_batch too. What was sent before is moved there in steps of 2,000, by one claim at a time: the others pass over
-- the rows that it has locked. The reader's place, round and id, whose row says that the type is a ring, is inserted, not
-- updated, as in mq.mark: nobody waits for it, and of two claims of one reader that began at the same place the one that went
-- further counts.
--
-- Low-water mark. A claim that comes short goes round to the lowest id, and it walks all that is done and not cleaned up yet, up
-- to the first message that is left; so it does where it looks for what is due or outside. If that took long, the next claims
-- begin there, for ten times as long as it took, at most 5 seconds: the mark is the place of a reader without a name, good
-- until low_until. What comes back below it calls lower_ring; what a late sender commits there waits for the next look from
-- the very start.

CREATE OR ALTER PROCEDURE mq.claim_wraparound
    @type nvarchar(max),
    @size bigint = NULL,
    @reader nvarchar(max) = NULL,
    @lease_seconds bigint = NULL,
    @after_id bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a limit of the session would hold in here too
    -- For as long as this call: claims pass over locked rows, which no higher level allows.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @start datetime2(7) = '0001-01-01';
    DECLARE @name nvarchar(400), @who nvarchar(400), @ordered bit, @paused bit, @seconds int, @detail nvarchar(2000);
    DECLARE @batch_key uniqueidentifier = NEWID();
    DECLARE @rescued bigint, @moved int, @promote int, @first_run_at datetime2(7), @n bigint, @after bigint, @last bigint;
    DECLARE @outside bit = 0, @resource nvarchar(255), @got int, @round int = 0, @near int, @found int = 0, @from int = 0;
    DECLARE @left int, @step int = 1000, @top int, @took int = 1;
    DECLARE @low_n bigint, @low_after bigint, @low_until datetime2(7), @low_promoted_to datetime2(7), @place_after bigint;
    DECLARE @full bit = 1, @low bigint = -9223372036854775808, @promoted_to datetime2(7) = @start, @expired bit, @due bit;
    DECLARE @begun datetime2(7), @from_id bigint, @walked int, @again int = 0, @tries int = 0, @next_id bigint;
    -- Microseconds.
    DECLARE @long int = 500;
    DECLARE @move mq.items;
    DECLARE @place TABLE (
        n int NOT NULL PRIMARY KEY, priority smallint NOT NULL, run_at datetime2(7) NOT NULL, id bigint NOT NULL
    );
    BEGIN TRY
        EXEC mq.require_name 'type', @type, 0;
        EXEC mq.require_range 'size', @size, 1, 10000;
        EXEC mq.require_name 'reader', @reader, 1;
        EXEC mq.require_range 'lease_seconds', @lease_seconds, 0, 315360000;
        SET @left = COALESCE(@size, 1);
        SELECT @name = @type, @who = mq.reader_name(@reader);
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT TOP (1) @ordered = ordered, @paused = paused, @seconds = COALESCE(@lease_seconds, lease_seconds)
        FROM mq.queue WHERE type IN (@name, N'') ORDER BY LEN(type) DESC;
        IF @ordered = 1
        BEGIN
            SET @detail = CONCAT(N'claim_wraparound goes by id and would break the order of ', @name, N'; use claim_batch');
            EXEC mq.raise_error 'queue_is_ordered', @detail;
        END;
        IF @paused = 0
        BEGIN
            SELECT TOP (1) @low_n = n, @low_after = after_id, @low_until = low_until, @low_promoted_to = promoted_to
            FROM mq.ring WITH (READPAST, READCOMMITTEDLOCK)
            WHERE type = @name AND reader = N''
            ORDER BY n DESC, after_id DESC;
            -- Further ahead than it was put, or a promotion ahead, means that the clock was set back.
            IF @now < @low_until AND @now >= DATEADD(SECOND, -5, @low_until) AND @low_promoted_to <= @now
                SELECT @full = 0, @low = @low_after, @promoted_to = @low_promoted_to;
            -- What takes long at first, a plan or pages that nobody has read for a while, does not take long again.
            WHILE @tries < 2
            BEGIN
                SELECT @tries = @tries + 1, @begun = SYSUTCDATETIME(), @expired = 0, @due = 0, @outside = 0;
                IF @full = 1
                BEGIN
                    IF EXISTS (
                        SELECT * FROM mq.batch WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @name AND lease_until <= @now
                    )
                        SET @expired = 1;
                    -- What stands at an ordinary place: sent before the type was a ring, or by a sender who did not see it yet.
                    -- Two looks, here and below: one range of the key each, and not the whole ring.
                    IF EXISTS (SELECT * FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @name AND priority > -32768)
                        SET @outside = 1;
                    ELSE IF EXISTS (
                        SELECT * FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority = -32768 AND run_at > @start
                    )
                        SET @outside = 1;
                END;
                IF EXISTS (
                    SELECT * FROM mq.delayed WITH (READPAST, READCOMMITTEDLOCK)
                    WHERE type = @name AND run_at > @promoted_to AND run_at <= @now
                )
                    SET @due = 1;
                SET @walked = DATEDIFF(MICROSECOND, @begun, SYSUTCDATETIME());
                IF @walked < @long
                    SET @tries = 2;
            END;
            IF @expired = 1
                EXEC mq.rescue @name, 20, @rescued OUTPUT;
            SET @promote = CASE WHEN 2 * @left > 100 THEN 2 * @left ELSE 100 END;
            IF @due = 1
            BEGIN
                EXEC mq.promote @name, @promoted_to, @now, @promote, 0, @moved OUTPUT, @first_run_at OUTPUT;
                SET @due = CASE WHEN @moved >= @promote THEN 1 ELSE 0 END;
            END;
            -- In a type that is no ring yet what has come back stands at its ordinary place.
            IF @full = 1 AND @outside = 0 AND (@expired = 1 OR @moved > 0) AND mq.is_ring(@name) = 0
                SET @outside = 1;
            SELECT TOP (1) @n = n, @place_after = after_id
            FROM mq.ring WITH (READPAST, READCOMMITTEDLOCK)
            WHERE type = @name AND reader = @who
            ORDER BY n DESC, after_id DESC;
            SET @after = COALESCE(@after_id, @place_after, 0);

            -- Moved only where we commit at once: until then nobody sees what is on its way.
            IF @outside = 1 AND @own = 1
            BEGIN
                SET @resource = CONCAT(N'mq.ring:', CAST(SUBSTRING(HASHBYTES('SHA2_256', @name), 1, 8) AS bigint));
                EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive',
                    @LockOwner = 'Transaction', @LockTimeout = 0;
                WHILE @got >= 0 AND @round < 2
                BEGIN
                    DELETE FROM @move;
                    DELETE r
                    OUTPUT deleted.id, deleted.attempts INTO @move (id, attempts)
                    FROM (
                        SELECT TOP (@step) type, priority, run_at, id
                        FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority > -32768
                        ORDER BY priority, run_at, id
                    ) AS f
                    INNER JOIN mq.ready AS r WITH (ROWLOCK)
                        ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
                    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                    IF @@ROWCOUNT = 0
                        DELETE r
                        OUTPUT deleted.id, deleted.attempts INTO @move (id, attempts)
                        FROM (
                            SELECT TOP (@step) type, priority, run_at, id
                            FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                            WHERE type = @name AND priority = -32768 AND run_at > @start
                            ORDER BY priority, run_at, id
                        ) AS f
                        INNER JOIN mq.ready AS r WITH (ROWLOCK)
                            ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
                        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                    INSERT INTO mq.ready (type, priority, run_at, id, attempts)
                    SELECT @name, -32768, @start, id, attempts FROM @move;
                    SET @round = @round + 1;
                END;
                IF NOT EXISTS (SELECT * FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @name AND priority > -32768)
                    AND NOT EXISTS (
                        SELECT * FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority = -32768 AND run_at > @start
                    )
                    SET @outside = 0;
            END;

            IF @outside = 1
            BEGIN
                -- More than is wanted: others may lock some of them before we do.
                SET @near = @left + 1000;
                INSERT INTO @place (n, priority, run_at, id)
                SELECT ROW_NUMBER() OVER (ORDER BY CASE WHEN a.id > @after THEN 0 ELSE 1 END, a.id), a.priority, a.run_at, a.id
                FROM (
                    SELECT o.priority, o.run_at, o.id
                    FROM (
                        SELECT TOP (4000) priority, run_at, id
                        FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority > -32768
                        ORDER BY priority, run_at, id
                    ) AS o
                    UNION ALL
                    SELECT s.priority, s.run_at, s.id
                    FROM (
                        SELECT TOP (4000) priority, run_at, id
                        FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority = -32768 AND run_at > @start
                        ORDER BY run_at, id
                    ) AS s
                    UNION ALL
                    SELECT p.priority, p.run_at, p.id
                    FROM (
                        SELECT TOP (@near) priority, run_at, id
                        FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority = -32768 AND run_at = @start AND id > @after
                        ORDER BY id
                    ) AS p
                    UNION ALL
                    SELECT q.priority, q.run_at, q.id
                    FROM (
                        SELECT TOP (@near) priority, run_at, id
                        FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority = -32768 AND run_at = @start AND id <= @after
                        ORDER BY id
                    ) AS q
                ) AS a;
                SET @found = @@ROWCOUNT;
                WHILE @left > 0 AND @from < @found
                BEGIN
                    SET @top = CASE WHEN @left < @step THEN @left ELSE @step END;
                    DELETE r
                    OUTPUT @batch_key, deleted.id, deleted.attempts + 1, CASE WHEN deleted.id > @after THEN 0 ELSE 1 END, @start
                    INTO mq.claimed (batch_key, id, attempt, priority, run_at)
                    FROM (
                        SELECT TOP (@top) k.type, k.priority, k.run_at, k.id
                        FROM @place AS p
                        INNER JOIN mq.ready AS k WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                            ON k.type = @name AND k.priority = p.priority AND k.run_at = p.run_at AND k.id = p.id
                        WHERE p.n > @from AND p.n <= @from + @step
                        ORDER BY p.n
                    ) AS f
                    INNER JOIN mq.ready AS r WITH (ROWLOCK)
                        ON r.type = f.type AND r.priority = f.priority AND r.run_at = f.run_at AND r.id = f.id
                    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                    SET @left = @left - @@ROWCOUNT;
                    SET @from = @from + @step;
                END;
            END
            ELSE
            BEGIN
                -- priority and run_at of mq.claimed tell the order of the claim: what is behind the place comes first.
                SET @from_id = CASE WHEN @after > @low THEN @after ELSE @low END;
                WHILE @left > 0 AND @took > 0
                BEGIN
                    SET @top = CASE WHEN @left < @step THEN @left ELSE @step END;
                    DELETE r
                    OUTPUT @batch_key, deleted.id, deleted.attempts + 1, 0, @start
                    INTO mq.claimed (batch_key, id, attempt, priority, run_at)
                    FROM (
                        SELECT TOP (@top) type, priority, run_at, id
                        FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority = -32768 AND run_at = @start AND id > @from_id
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
                SET @tries = 0;
                WHILE @left > 0 AND @tries < 2
                BEGIN
                    SELECT @tries = @tries + 1, @begun = SYSUTCDATETIME(), @next_id = NULL;
                    IF @left = COALESCE(@size, 1)
                        SELECT TOP (1) @last = id
                        FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority = -32768 AND run_at = @start AND id > @from_id
                        ORDER BY priority, run_at, id;
                    SELECT TOP (1) @next_id = id
                    FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK)
                    WHERE type = @name AND priority = -32768 AND run_at = @start AND id > @low AND id <= @after
                    ORDER BY priority, run_at, id;
                    SET @again = DATEDIFF(MICROSECOND, @begun, SYSUTCDATETIME());
                    IF @again < @long
                        SET @tries = 2;
                END;
                IF @left > 0
                    SELECT @walked = @walked + @again, @low = COALESCE(@next_id - 1, @from_id), @last = NULL;
                SET @took = CASE WHEN @next_id IS NULL THEN 0 ELSE 1 END;
                WHILE @left > 0 AND @took > 0
                BEGIN
                    SET @top = CASE WHEN @left < @step THEN @left ELSE @step END;
                    DELETE r
                    OUTPUT @batch_key, deleted.id, deleted.attempts + 1, 1, @start
                    INTO mq.claimed (batch_key, id, attempt, priority, run_at)
                    FROM (
                        SELECT TOP (@top) type, priority, run_at, id
                        FROM mq.ready WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority = -32768 AND run_at = @start AND id >= @next_id AND id <= @after
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
            SELECT TOP (1) @last = id FROM mq.claimed WHERE batch_key = @batch_key ORDER BY priority DESC, id DESC;
            IF @walked > @long AND @outside = 0 AND (@last IS NOT NULL OR @n IS NOT NULL)
            BEGIN
                INSERT INTO mq.ring (type, reader, n, after_id, low_until, promoted_to)
                VALUES (@name, N'', COALESCE(@low_n, 0) + 1, @low,
                    CASE
                        WHEN @full = 0 THEN @low_until
                        WHEN @walked > 500000 THEN DATEADD(SECOND, 5, SYSUTCDATETIME())
                        ELSE DATEADD(MICROSECOND, 10 * @walked, SYSUTCDATETIME())
                    END,
                    -- Not up to now: somebody may be about to commit what he has failed.
                    CASE WHEN @due = 1 THEN @promoted_to ELSE DATEADD(SECOND, -1, @now) END);
                DELETE FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @name AND reader = N'' AND n < @low_n AND n >= @low_n - 20;
            END;
        END;

        IF @last IS NULL
            EXEC mq.no_messages;
        ELSE
        BEGIN
            INSERT INTO mq.ring (type, reader, n, after_id)
            VALUES (@name, @who, COALESCE(@n, 0) + CASE WHEN @after_id IS NULL THEN 0 ELSE 1 END
                + CASE WHEN @last > @after THEN 0 ELSE 1 END, @last);
            -- Not the place before: until we commit it is the only one that others see. But those that were left a little behind
            -- it, the last one of the round before, and at the end of a round the last two.
            IF @after_id IS NULL AND @last > @after
                DELETE FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @name AND reader = @who
                    AND ((n = @n AND after_id < @place_after AND after_id >= @place_after - 20 * COALESCE(@size, 1)) OR n = @n - 1);
            ELSE
                DELETE FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @name AND reader = @who AND n <= @n AND n >= @n - 1 AND (n < @n OR after_id < @place_after);
            EXEC mq.hold @batch_key, @name, @who, @seconds;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;
GO

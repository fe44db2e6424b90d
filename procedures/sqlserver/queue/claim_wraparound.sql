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
-- Low-water mark. A claim that comes short goes round to the lowest id, and it scans all that is done and not cleaned up yet, up
-- to the first message that is left. So it does where it searches for what is due or outside. If that took long, the next claims
-- begin there, for ten times as long as it took, at most 5 seconds: the mark is the place of a reader without a name, good
-- until low_until. What comes back below it calls lower_ring; what a late sender commits there waits for the next scan from
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
    -- Microseconds.
    DECLARE @long_scan int = 500;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @name nvarchar(400), @who nvarchar(400), @ordered bit, @paused bit, @seconds int;
    DECLARE @batch_key uniqueidentifier = NEWID(), @wanted int, @left int, @took int, @last bigint;
    DECLARE @low_n bigint, @low_after bigint, @low_until datetime2(7), @low_promoted_to datetime2(7);
    DECLARE @full_scan bit = 1, @low bigint = -9223372036854775808, @promoted_to datetime2(7) = '0001-01-01';
    DECLARE @expired bit, @due bit, @outside bit, @scanned int, @again int, @begun datetime2(7), @tries int = 0;
    DECLARE @rescued bigint, @promote int, @moved int, @first_run_at datetime2(7);
    DECLARE @n bigint, @place_after bigint, @after bigint, @from_id bigint, @next_id bigint;
    BEGIN TRY
        EXEC mq.require_name 'type', @type, 0;
        EXEC mq.require_range 'size', @size, 1, 10000;
        EXEC mq.require_name 'reader', @reader, 1;
        EXEC mq.require_range 'lease_seconds', @lease_seconds, 0, 315360000;
        SELECT @name = @type, @who = mq.reader_name(@reader), @wanted = COALESCE(@size, 1), @left = COALESCE(@size, 1);
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @ordered = ordered, @paused = paused, @seconds = COALESCE(@lease_seconds, lease_seconds) FROM mq.policy(@name);
        IF @ordered = 1
            EXEC mq.raise_error 'queue_is_ordered',
                N'claim_wraparound goes by id and would break the order of {}; use claim_batch', @name;
        IF @paused = 0
        BEGIN
            SELECT TOP (1) @low_n = n, @low_after = after_id, @low_until = low_until, @low_promoted_to = promoted_to
            FROM mq.ring WITH (READPAST, READCOMMITTEDLOCK)
            WHERE type = @name AND reader = N''
            ORDER BY n DESC, after_id DESC;
            -- Further ahead than it was put, or a promotion ahead, means that the clock was set back.
            IF @now < @low_until AND @now >= DATEADD(SECOND, -5, @low_until) AND @low_promoted_to <= @now
                SELECT @full_scan = 0, @low = @low_after, @promoted_to = @low_promoted_to;
            EXEC mq.scan_ring @name, @full_scan, @promoted_to, @now, @expired OUTPUT, @due OUTPUT, @outside OUTPUT, @scanned OUTPUT;
            IF @expired = 1
                EXEC mq.rescue @name, 20, @rescued OUTPUT;
            SET @promote = CASE WHEN 2 * @wanted > 100 THEN 2 * @wanted ELSE 100 END;
            IF @due = 1
            BEGIN
                EXEC mq.promote @name, @promoted_to, @now, @promote, 0, @moved OUTPUT, @first_run_at OUTPUT;
                SET @due = CASE WHEN @moved >= @promote THEN 1 ELSE 0 END;
            END;
            -- In a type that is no ring yet what has come back stands at its ordinary place.
            IF @full_scan = 1 AND @outside = 0 AND (@expired = 1 OR @moved > 0) AND mq.is_ring(@name) = 0
                SET @outside = 1;
            IF @outside = 1 AND @own = 1
            BEGIN
                EXEC mq.move_to_ring @name;
                SET @outside = mq.outside_ring(@name);
            END;

            SELECT TOP (1) @n = n, @place_after = after_id
            FROM mq.ring WITH (READPAST, READCOMMITTEDLOCK)
            WHERE type = @name AND reader = @who
            ORDER BY n DESC, after_id DESC;
            SET @after = COALESCE(@after_id, @place_after, 0);
            IF @outside = 1
                EXEC mq.take_around @name, @after, @wanted, @batch_key;
            ELSE
            BEGIN
                -- What lies after the place comes first.
                SET @from_id = CASE WHEN @after > @low THEN @after ELSE @low END;
                EXEC mq.take_ring @name, @from_id, 9223372036854775807, 0, @left, @batch_key, @took OUTPUT;
                SET @left = @left - @took;
                IF @left > 0
                BEGIN
                    WHILE @tries < 2
                    BEGIN
                        SELECT @tries = @tries + 1, @begun = SYSUTCDATETIME(), @next_id = NULL;
                        IF @left = @wanted
                            SELECT TOP (1) @last = id
                            FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK)
                            WHERE type = @name AND priority = -32768 AND run_at = '0001-01-01' AND id > @from_id
                            ORDER BY priority, run_at, id;
                        SELECT TOP (1) @next_id = id
                        FROM mq.ready WITH (READPAST, READCOMMITTEDLOCK)
                        WHERE type = @name AND priority = -32768 AND run_at = '0001-01-01' AND id > @low AND id <= @after
                        ORDER BY priority, run_at, id;
                        SET @again = DATEDIFF(MICROSECOND, @begun, SYSUTCDATETIME());
                        IF @again < @long_scan
                            BREAK;
                    END;
                    SELECT @scanned = @scanned + @again, @low = COALESCE(@next_id - 1, @from_id), @last = NULL;
                    IF @next_id IS NOT NULL
                        EXEC mq.take_ring @name, @low, @after, 1, @left, @batch_key, @took OUTPUT;
                END;
            END;
            SELECT TOP (1) @last = id FROM mq.claimed WHERE batch_key = @batch_key ORDER BY priority DESC, id DESC;
            IF @scanned > @long_scan AND @outside = 0 AND (@last IS NOT NULL OR @n IS NOT NULL)
            BEGIN
                INSERT INTO mq.ring (type, reader, n, after_id, low_until, promoted_to)
                VALUES (@name, N'', COALESCE(@low_n, 0) + 1, @low,
                    CASE
                        WHEN @full_scan = 0 THEN @low_until
                        WHEN @scanned > 500000 THEN DATEADD(SECOND, 5, SYSUTCDATETIME())
                        ELSE DATEADD(MICROSECOND, 10 * @scanned, SYSUTCDATETIME())
                    END,
                    -- Not up to now: somebody may be about to commit what they have failed.
                    CASE WHEN @due = 1 THEN @promoted_to ELSE DATEADD(SECOND, -1, @now) END);
                DELETE FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
                WHERE type = @name AND reader = N'' AND n < @low_n AND n >= @low_n - 20;
            END;
        END;

        IF @last IS NULL
            EXEC mq.no_messages;
        ELSE
        BEGIN
            EXEC mq.save_place @name, @who, @n, @place_after, @after_id, @last, @wanted;
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

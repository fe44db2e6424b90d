-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   @type, @size (1 to 10,000; NULL: 1), @reader (NULL: the application name), @lease_seconds (NULL: the
--              queue's), @after_id (NULL: the position where this reader stopped)
-- Returns:     the messages after @after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50002 invalid_argument, 50003 queue_is_ordered (or has limits per group)
-- Transaction: joins the caller's; never waits for another claim
-- Example:     EXEC mq.claim_wraparound N'crawl', 10, N'worker-1';
--
-- An index by id would make each claim of every other queue twice as expensive. Instead, the first claim that finds a
-- message turns the type into a ring: all its rows in mq.ready get one priority and one run_at, so the primary key orders
-- them by id, also for claim_batch. One claim at a time moves the messages that were sent before, 2,000 per call; the
-- others skip the rows that it has locked. The position of a reader (round and id) is inserted, not updated, like the marks
-- in mq.mark: no claim waits for it. When two claims of one reader start at the same position, the position further ahead
-- counts. A row in mq.ring marks the type as a ring.
--
-- Low-water mark. A claim that finds too few messages continues at the lowest id. It scans all deleted rows that are not
-- cleaned up yet, up to the first ready message. The scan for due messages and messages outside the ring does the same. If
-- that took long, the next claims start there, for ten times as long as it took, at most 5 seconds. The mark is stored as
-- the position of the reader with the empty name, valid until low_until. A procedure that makes a message ready below the
-- mark calls lower_ring. A message that a sender commits late below the mark waits for the next full scan.

CREATE OR ALTER PROCEDURE mq.claim_wraparound
    @type nvarchar(max),
    @size bigint = NULL,
    @reader nvarchar(max) = NULL,
    @lease_seconds bigint = NULL,
    @after_id bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    -- Microseconds. A longer scan leaves a low-water mark.
    DECLARE @long_scan int = 500;
    -- Seconds. A mark holds for ten times as long as its scans took, at most this long.
    DECLARE @longest int = 5;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @name nvarchar(400), @who nvarchar(400), @grouped bit, @paused bit, @seconds int, @limited bit, @counted bit, @count int;
    DECLARE @batch_key uniqueidentifier = NEWID(), @wanted int, @left int, @took int, @last bigint;
    DECLARE @low_n bigint, @low_after bigint, @low_until datetime2(7), @low_promoted_to datetime2(7);
    DECLARE @full_scan bit = 1, @from bigint = -9223372036854775808, @promoted_to datetime2(7) = '0001-01-01';
    DECLARE @outside bit, @scanned bigint, @scanned_again bigint, @ahead bit, @lowest_id bigint;
    DECLARE @n bigint, @position bigint, @after bigint, @high bigint, @round bigint;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        EXEC mq_internal.require_name 'reader', @reader, 1;
        EXEC mq_internal.require_range 'lease_seconds', @lease_seconds, 0, 315360000;
        SELECT @name = @type, @who = mq_internal.reader_name(@reader), @wanted = COALESCE(@size, 1);
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @grouped = grouped, @paused = paused, @seconds = COALESCE(@lease_seconds, lease_seconds),
            @limited = CASE WHEN max_active > 0 OR rate > 0 THEN 1 ELSE 0 END, @counted = CASE WHEN max_active > 0 THEN 1 ELSE 0 END
        FROM mq_internal.policy(@name);
        IF @grouped = 1
            EXEC mq_internal.raise_error 'queue_is_ordered',
                N'type: {} is ordered or has limits per group; use claim_batch', @name;
        IF @paused = 0 AND @limited = 1
            EXEC mq_internal.allowance @name, @wanted, @wanted OUTPUT;
        IF @paused = 0 AND @wanted > 0
        BEGIN
            SELECT TOP (1) @low_n = n, @low_after = after_id, @low_until = low_until, @low_promoted_to = promoted_to
            FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
            WHERE type = @name AND reader = N''
            ORDER BY n DESC, after_id DESC;
            -- A mark further ahead, or a promotion in the future, means that the clock was set back.
            IF @now < @low_until AND @now >= DATEADD(SECOND, -5, @low_until) AND @low_promoted_to <= @now
                SELECT @full_scan = 0, @from = @low_after, @promoted_to = @low_promoted_to;
            EXEC mq_internal.fill_ring @name, @wanted, @full_scan, @promoted_to OUTPUT, @now, @own, @long_scan, @outside OUTPUT, @scanned OUTPUT;

            SELECT TOP (1) @n = n, @position = after_id
            FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
            WHERE type = @name AND reader = @who
            ORDER BY n DESC, after_id DESC;
            SET @after = COALESCE(@after_id, @position, 0);
            SET @high = CASE WHEN @after > @from THEN @after ELSE @from END;
            IF @outside = 1
                EXEC mq_internal.take_around @name, @after, @wanted, @batch_key;
            ELSE
            BEGIN
                EXEC mq_internal.take_ring @name, @high, 9223372036854775807, 0, @wanted, @batch_key, @took OUTPUT;
                SELECT @left = @wanted - @took, @ahead = CASE @took WHEN 0 THEN 1 ELSE 0 END;
                IF @left > 0
                BEGIN
                    EXEC mq_internal.scan_ring @name, @from, @after, @ahead, @long_scan, @lowest_id OUTPUT, @scanned_again OUTPUT;
                    SELECT @scanned = @scanned + @scanned_again, @from = COALESCE(@lowest_id - 1, @high);
                    IF @lowest_id IS NOT NULL
                        EXEC mq_internal.take_ring @name, @from, @after, 1, @left, @batch_key, @took OUTPUT;
                END;
            END;
            SELECT TOP (1) @last = id FROM mq.claimed WHERE batch_key = @batch_key ORDER BY priority DESC, id DESC;
            IF @scanned > @long_scan AND @outside = 0 AND (@last IS NOT NULL OR @n IS NOT NULL)
            BEGIN
                IF @full_scan = 1
                    SET @low_until = CASE
                        WHEN 10 * @scanned / 1000000 >= @longest THEN DATEADD(SECOND, @longest, SYSUTCDATETIME())
                        ELSE DATEADD(MICROSECOND, 10 * @scanned, SYSUTCDATETIME())
                    END;
                EXEC mq_internal.renew_ring_mark @name, @low_n, @from, @low_until, @promoted_to;
            END;
        END;

        IF @last IS NULL
            EXEC mq_internal.no_messages;
        ELSE
        BEGIN
            SET @round = COALESCE(@n, 0) + CASE WHEN @after_id IS NULL THEN 0 ELSE 1 END + CASE WHEN @last > @after THEN 0 ELSE 1 END;
            EXEC mq_internal.save_position @name, @who, @wanted, @round, @last, @n, @position;
            SELECT @count = COUNT(*) FROM mq.claimed WHERE batch_key = @batch_key;
            IF @limited = 1
                EXEC mq_internal.spend @name, @count, @counted;
            EXEC mq_internal.hold @batch_key, @name, @who, @seconds, @counted, 0;
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

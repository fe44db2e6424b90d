-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   @type, @size (1 to 10,000; NULL: 1), @consumer (NULL: the application name), @lease_seconds (NULL: the
--              queue's), @after_id (NULL: the position where this consumer stopped)
-- Returns:     the messages after @after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50002 invalid_argument, 50003 wrong_kind (the queue is not declared a ring)
-- Transaction: joins the caller's; never waits for another claim
-- Example:     EXEC mq.claim_wraparound N'crawl', 10, N'worker-1';
--
-- All messages of a ring have one priority and one run_at in mq.ready, so the primary key orders them by id, also for
-- claim_batch. The position of a consumer (round and id) is inserted, not updated, like the marks in mq.mark: no claim waits
-- for it. When two claims of one consumer start at the same position, the position further ahead counts.
--
-- A claim that finds too few messages continues at the lowest id, or at the mark: the lowest id that earlier claims found
-- there. See pick for the rules of marks.
CREATE OR ALTER PROCEDURE mq.claim_wraparound
    @type nvarchar(max),
    @size bigint = NULL,
    @consumer nvarchar(max) = NULL,
    @lease_seconds bigint = NULL,
    @after_id bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    -- As in pick: milliseconds of a full scan that finds nothing. As in take_ready: renew the mark when it is so far behind.
    DECLARE @long_scan int = 5, @stride bigint = 1000;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @name nvarchar(400), @who nvarchar(400), @ring bit, @paused bit, @seconds int, @limited bit, @counted bit, @count int = 0;
    DECLARE @batch_key uniqueidentifier = NEWID(), @wanted int, @left int, @took int, @most int, @last bigint, @pause int;
    DECLARE @mark_n bigint, @full_scan bit, @scanned_at datetime2(7), @promoted_to datetime2(7), @lowered_to datetime2(7), @lowered bit;
    DECLARE @mark bigint, @from bigint = -9223372036854775808, @lowest bigint;
    DECLARE @n bigint, @position bigint, @after bigint, @high bigint, @round bigint;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        EXEC mq_internal.require_name 'consumer', @consumer, 1;
        EXEC mq_internal.require_range 'lease_seconds', @lease_seconds, 1, 86400;
        SELECT @name = @type, @who = mq_internal.consumer_name(@consumer), @wanted = COALESCE(@size, 1);
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @ring = ring, @paused = paused, @most = max_attempts, @seconds = COALESCE(@lease_seconds, lease_seconds),
            @limited = CASE WHEN max_active > 0 OR rate > 0 THEN 1 ELSE 0 END, @counted = CASE WHEN max_active > 0 THEN 1 ELSE 0 END
        FROM mq_internal.policy(@name);
        IF @ring = 0
            EXEC mq_internal.raise_error 'wrong_kind',
                N'type: {} is not a ring; declare it with EXEC mq.set_option @type, ''ring'', 1, or use claim_batch', @name;
        IF @paused = 0 AND @limited = 1
            EXEC mq_internal.allowance @name, @wanted, @wanted OUTPUT;
        IF @paused = 0 AND @wanted > 0
        BEGIN
            EXEC mq_internal.make_ready @name, @wanted, 0, 1, @now, @mark_n OUTPUT, @full_scan OUTPUT, @scanned_at OUTPUT,
                @promoted_to OUTPUT, @lowered_to OUTPUT, @lowered OUTPUT;
            SELECT @mark = MIN(id)
            FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @name AND n = @mark_n AND priority = -32768 AND run_at = '0001-01-01';
            IF @full_scan = 0 AND @lowered = 0 AND @mark IS NOT NULL
                SET @from = @mark - 1;
            SELECT TOP (1) @n = n, @position = after_id
            FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
            WHERE type = @name AND consumer = @who
            ORDER BY n DESC, after_id DESC;
            SET @after = COALESCE(@after_id, @position, 0);
            SET @high = CASE WHEN @after > @from THEN @after ELSE @from END;
            EXEC mq_internal.take_ring @name, @high, 9223372036854775807, 0, @wanted, @batch_key, @took OUTPUT;
            SELECT @left = @wanted - @took, @count = @took, @lowest = COALESCE(@mark, 0);
            IF @left > 0
            BEGIN
                EXEC mq_internal.take_ring @name, @from, @after, 1, @left, @batch_key, @took OUTPUT;
                SET @count = @count + @took;
                -- Nothing is ready below the first message of this part; with an empty part, nothing up to the position.
                IF @took > 0
                    SELECT @lowest = MIN(id) FROM mq.claimed WHERE batch_key = @batch_key AND priority = 1;
                ELSE IF @after_id IS NULL
                    SET @lowest = @high;
            END
            ELSE IF @lowered = 1 OR @full_scan = 1
                SET @lowest = 0;
            SET @pause = 10 * DATEDIFF(MILLISECOND, @now, SYSUTCDATETIME());
            IF @full_scan = 1
                SET @scanned_at = DATEADD(MILLISECOND, CASE WHEN @pause < 5000 THEN @pause ELSE 5000 END, @now);
            IF @lowered = 1 OR (@count > 0 AND (@full_scan = 1 OR @lowest > COALESCE(@mark, 0) + @stride))
                OR (@full_scan = 1 AND @mark_n IS NOT NULL AND @pause > 10 * @long_scan)
                EXEC mq_internal.renew_marks @name, @mark_n, @scanned_at, @promoted_to, NULL, @lowest, '0001-01-01', '0001-01-01';
        END;

        IF @count = 0
            EXEC mq_internal.return_batch NULL, NULL, NULL;
        ELSE
        BEGIN
            SELECT TOP (1) @last = id FROM mq.claimed WHERE batch_key = @batch_key ORDER BY priority DESC, id DESC;
            SET @round = COALESCE(@n, 0) + CASE WHEN @after_id IS NULL THEN 0 ELSE 1 END + CASE WHEN @last > @after THEN 0 ELSE 1 END;
            EXEC mq_internal.save_position @name, @who, @round, @last, N'-', 0, @n, @position, N'-';
            IF @limited = 1
                EXEC mq_internal.spend @name, @count, @counted;
            EXEC mq_internal.hold @batch_key, @name, @who, @seconds, @counted, 0, @most;
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

-- claim_ring: move messages of a ring into a batch in order of id, round-robin, and save the consumer's new position.
-- Arguments: @type, @size, @consumer, @after_id (NULL: the position where this consumer stopped), @batch_key
-- Returns: @count: how many rows of mq.claimed now have @batch_key: those after @after_id with the priority 0, those from
--     the lowest id on with the priority 1
-- Transaction: never waits for another claim
--
-- All messages of a ring have one priority and one run_at in mq.ready, so the primary key orders them by id. The position
-- of a consumer (round and id) is inserted, not updated, like the marks in mq.mark: no claim waits for it. When two claims
-- of one consumer start at the same position, the position further ahead counts.
--
-- A claim that finds too few messages continues at the lowest id, or at the mark: the lowest id that earlier claims found
-- there. See pick for the rules of marks.
CREATE OR ALTER PROCEDURE mq_internal.claim_ring
    @type nvarchar(400), @size int, @consumer nvarchar(400), @after_id bigint, @batch_key uniqueidentifier, @count int OUTPUT
AS
BEGIN
    -- As in pick: milliseconds of a full scan that finds nothing. As in take_ready: renew the mark when it is so far behind.
    DECLARE @long_scan int = 5, @stride bigint = 1000;
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @pause int, @left int, @took int, @last bigint;
    DECLARE @mark_n bigint, @full_scan bit, @scanned_at datetime2(7), @promoted_to datetime2(7), @lowered_to datetime2(7), @lowered bit;
    DECLARE @mark bigint, @from bigint = -9223372036854775808, @lowest bigint;
    DECLARE @n bigint, @position bigint, @after bigint, @high bigint, @round bigint;
    EXEC mq_internal.make_ready @type, @size, 0, 1, @now, @mark_n OUTPUT, @full_scan OUTPUT, @scanned_at OUTPUT,
        @promoted_to OUTPUT, @lowered_to OUTPUT, @lowered OUTPUT;
    SELECT @mark = MIN(id)
    FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE type = @type AND n = @mark_n AND priority = -32768 AND run_at = '0001-01-01';
    IF @full_scan = 0 AND @lowered = 0 AND @mark IS NOT NULL
        SET @from = @mark - 1;
    SELECT TOP (1) @n = n, @position = after_id
    FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
    WHERE type = @type AND consumer = @consumer
    ORDER BY n DESC, after_id DESC;
    SET @after = COALESCE(@after_id, @position, 0);
    SET @high = CASE WHEN @after > @from THEN @after ELSE @from END;
    EXEC mq_internal.take_ring @type, @high, 9223372036854775807, 0, @size, @batch_key, @took OUTPUT;
    SELECT @left = @size - @took, @count = @took, @lowest = COALESCE(@mark, 0);
    IF @left > 0
    BEGIN
        EXEC mq_internal.take_ring @type, @from, @after, 1, @left, @batch_key, @took OUTPUT;
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
        EXEC mq_internal.renew_marks @type, @mark_n, @scanned_at, @promoted_to, NULL, @lowest, '0001-01-01', '0001-01-01';
    IF @count > 0
    BEGIN
        SELECT TOP (1) @last = id FROM mq.claimed WHERE batch_key = @batch_key ORDER BY priority DESC, id DESC;
        SET @round = COALESCE(@n, 0) + CASE WHEN @after_id IS NULL THEN 0 ELSE 1 END + CASE WHEN @last > @after THEN 0 ELSE 1 END;
        EXEC mq_internal.save_position @type, @consumer, @round, @last, N'-', 0, @n, @position, N'-';
    END;
END;

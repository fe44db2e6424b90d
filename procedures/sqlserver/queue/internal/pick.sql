-- pick: move up to @size ready messages of a type from mq.ready into a batch, in claim order.
-- Arguments: @type, @size, @take (1: called by take_batch; see pick_grouped), @batch_key
-- Returns: @count: how many rows of mq.claimed now have @batch_key
--
-- Low-water marks. A claim starts at the marks of mq.mark, one per priority, where earlier claims found their first
-- messages (see take_ready).
--
-- No message is skipped for longer than a second. A procedure that puts a message back below a mark calls lower_mark.
-- When a message becomes due below a mark, this procedure lowers the mark. Two kinds of messages can appear below a
-- mark without lowering it: their sender commits late, or a take rolls back. So no segment starts later than one second
-- ago, and the first claim of each second is a full scan: it ignores the marks. If a full scan takes long because of
-- many deleted rows, the next one is later: after ten times that time, at most 5 seconds.
-- docs/background/how-a-claim-works.md explains this with a drawing.
CREATE OR ALTER PROCEDURE mq_internal.pick
    @type nvarchar(400), @size int, @take bit, @batch_key uniqueidentifier, @count int OUTPUT
AS
BEGIN
    -- Milliseconds. A full scan that takes longer than this and finds nothing has read deleted rows. Idle consumers should
    -- not repeat it often.
    DECLARE @long_scan int = 5;
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @pause int, @latest datetime2(7), @lowered_to datetime2(7);
    DECLARE @grouped bit, @fair bit, @ring bit, @full_scan bit, @lowered bit, @front_moved bit, @from_n bigint;
    DECLARE @n bigint, @scanned_at datetime2(7), @promoted_to datetime2(7);
    SET @count = 0;
    EXEC mq_internal.make_ready @type, @size, @take, 0, @now, @n OUTPUT, @full_scan OUTPUT, @scanned_at OUTPUT, @promoted_to OUTPUT,
        @lowered_to OUTPUT, @lowered OUTPUT;
    SELECT @grouped = grouped, @fair = fair, @ring = ring
    FROM mq_internal.policy(@type);
    IF @grouped = 1 OR @fair = 1
    BEGIN
        IF @grouped = 1 AND @full_scan = 1 AND @take = 0
            EXEC mq_internal.clean_buckets @type;
        IF @grouped = 1
            EXEC mq_internal.pick_grouped @type, @size, @take, @batch_key, @count OUTPUT;
        ELSE
            EXEC mq_internal.pick_fair @type, @size, @batch_key, @count OUTPUT;
        IF @full_scan = 1 AND @count > 0
            -- These claims start at no mark. The row only records the time of the last full scan.
            EXEC mq_internal.renew_marks @type, @n, @now, '1900-01-01', NULL, NULL, '0001-01-01', '9999-12-31';
        RETURN;
    END;

    -- Of a ring only takes come here: its marks belong to claim_ring.
    IF @full_scan = 0 AND @ring = 0
        SET @from_n = @n;
    SET @latest = DATEADD(SECOND, -1, @now);
    IF @lowered_to < @latest
        SET @latest = @lowered_to;
    EXEC mq_internal.take_ready @type, @size, @from_n, @latest, @batch_key, @count OUTPUT, @front_moved OUTPUT;
    IF @ring = 1
    BEGIN
        IF @full_scan = 1 AND @count > 0
            EXEC mq_internal.renew_marks @type, @n, @now, '1900-01-01', NULL, NULL, '1900-01-01', '9999-12-31';
        RETURN;
    END;
    SET @pause = 10 * DATEDIFF(MILLISECOND, @now, SYSUTCDATETIME());
    IF @full_scan = 1
        SET @scanned_at = DATEADD(MILLISECOND, CASE WHEN @pause < 5000 THEN @pause ELSE 5000 END, @now);
    IF @lowered = 1 OR (@count > 0 AND (@full_scan = 1 OR @front_moved = 1))
        EXEC mq_internal.renew_marks @type, @n, @scanned_at, @promoted_to, @batch_key, NULL, '0001-01-01', @lowered_to;
    ELSE IF @count = 0 AND @full_scan = 1 AND @n IS NOT NULL AND SYSUTCDATETIME() > DATEADD(MILLISECOND, @long_scan, @now)
        -- Nothing is ready: move all marks up to now.
        EXEC mq_internal.renew_marks @type, @n, @scanned_at, @promoted_to, NULL, NULL, @now, '9999-12-31';
END;

-- claim: claim messages of a type, unless it is paused, and return them.
-- Arguments: @type, @size, @consumer, @lease_seconds (NULL: the policy's), @of_ring (1: refuse a queue that is not a ring),
--     @after_id (of a ring; NULL: the position where this consumer stopped), @of_many (1: return no result when there are
--     no messages)
-- Returns: the messages in order of priority, run_at, id, those of a ring as claim_ring says; no rows when nothing is
--     ready, no limit allows it, or the queue is paused; @count: how many
CREATE OR ALTER PROCEDURE mq_internal.claim
    @type nvarchar(400), @size int, @consumer nvarchar(400), @lease_seconds int, @of_ring bit = 0, @after_id bigint = NULL,
    @of_many bit = 0, @count int = 0 OUTPUT
AS
BEGIN
    DECLARE @ring bit, @paused bit, @limited bit, @counted bit, @in_groups bit, @most int, @batch_key uniqueidentifier = NEWID();
    DECLARE @now datetime2(7), @until datetime2(7);
    SET @count = 0;
    SELECT @ring = ring, @paused = paused, @most = max_attempts, @lease_seconds = COALESCE(@lease_seconds, lease_seconds),
        @limited = CASE WHEN max_active > 0 OR rate > 0 THEN 1 ELSE 0 END, @counted = CASE WHEN max_active > 0 THEN 1 ELSE 0 END,
        @in_groups = CASE WHEN grouped = 1 AND ordered = 0 THEN 1 ELSE 0 END
    FROM mq_internal.policy(@type);
    IF @of_ring = 1 AND @ring = 0
        EXEC mq_internal.raise_error 'wrong_kind',
            N'type: {} is not a ring; declare it with EXEC mq.set_option @type, ''ring'', 1, or use claim_batch', @type;
    IF @paused = 0 AND @limited = 1
        EXEC mq_internal.allowance @type, @size, @size OUTPUT;
    IF @paused = 0 AND @size > 0 AND @ring = 1
        EXEC mq_internal.claim_ring @type, @size, @consumer, @after_id, @batch_key, @count OUTPUT;
    ELSE IF @paused = 0 AND @size > 0
        EXEC mq_internal.pick @type, @size, 0, @batch_key, @count OUTPUT;
    IF @count > 0 AND @limited = 1
        EXEC mq_internal.spend @type, @count, @counted;
    IF @count > 0
    BEGIN
        SET @now = SYSUTCDATETIME();
        SET @until = DATEADD(SECOND, @lease_seconds, @now);
        INSERT INTO mq.batch (batch_key, claimed_at, lease_until, lease_seconds, counted, in_groups, type, consumer)
        VALUES (@batch_key, @now, @until, @lease_seconds, @counted, @in_groups, @type, @consumer);
        EXEC mq_internal.return_batch @batch_key, @until, @most;
    END
    ELSE IF @of_many = 0
        EXEC mq_internal.return_batch NULL, NULL, NULL;
END;

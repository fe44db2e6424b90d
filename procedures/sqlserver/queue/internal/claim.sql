-- claim: claim messages of a type, unless it is paused, and return them.
-- Arguments: @type, @size, @consumer, @lease_seconds (NULL: the policy's), @of_many (1: return no result when there are no
--     messages)
-- Returns: the messages in order of priority, run_at, id; no rows when nothing is ready, no limit allows it, or the
--     queue is paused; @count: how many
CREATE OR ALTER PROCEDURE mq_internal.claim
    @type nvarchar(400), @size int, @consumer nvarchar(400), @lease_seconds int, @of_many bit = 0,
    @count int = 0 OUTPUT
AS
BEGIN
    DECLARE @paused bit, @limited bit, @counted bit, @in_groups bit, @most int, @batch_key uniqueidentifier = NEWID();
    SET @count = 0;
    SELECT @paused = paused, @most = max_attempts, @lease_seconds = COALESCE(@lease_seconds, lease_seconds),
        @limited = CASE WHEN max_active > 0 OR rate > 0 THEN 1 ELSE 0 END, @counted = CASE WHEN max_active > 0 THEN 1 ELSE 0 END,
        @in_groups = CASE WHEN grouped = 1 AND ordered = 0 THEN 1 ELSE 0 END
    FROM mq_internal.policy(@type);
    IF @paused = 0 AND @limited = 1
        EXEC mq_internal.allowance @type, @size, @size OUTPUT;
    IF @paused = 0 AND @size > 0
        EXEC mq_internal.pick @type, @size, 0, @batch_key, @count OUTPUT;
    IF @count > 0 AND @limited = 1
        EXEC mq_internal.spend @type, @count, @counted;
    IF @count > 0
        EXEC mq_internal.hold @batch_key, @type, @consumer, @lease_seconds, @counted, @in_groups, @most;
    ELSE IF @of_many = 0
        EXEC mq_internal.return_batch NULL, NULL, NULL;
END;

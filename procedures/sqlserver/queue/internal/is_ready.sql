-- is_ready: whether a claim of a type would find something now.
-- Returns: 1 or 0; a locked row, which is being claimed or is not committed yet, does not count
CREATE OR ALTER FUNCTION mq_internal.is_ready (@type nvarchar(400), @now datetime2(7))
RETURNS smallint
AS
BEGIN
    DECLARE @paused bit, @limited bit, @in_groups bit;
    SELECT @paused = paused, @limited = CASE WHEN max_active > 0 OR rate > 0 THEN 1 ELSE 0 END,
        @in_groups = CASE WHEN grouped = 1 AND (ordered = 0 OR group_rate > 0 OR EXISTS (
            SELECT * FROM mq.queue_group WITH (READCOMMITTED, FORCESEEK, INDEX (queue_group_lane)) WHERE type = @type AND rate > 0
        )) THEN 1 ELSE 0 END
    FROM mq_internal.policy(@type);
    IF @paused = 1
        RETURN 0;
    IF @limited = 1 AND mq_internal.has_room(@type, @now) = 0
        RETURN 0;
    IF @in_groups = 0 AND EXISTS (SELECT * FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type)
        RETURN 1;
    IF @in_groups = 1 AND mq_internal.has_group(@type) = 1
        RETURN 1;
    IF EXISTS (SELECT * FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND run_at <= @now)
        RETURN 1;
    IF mq_internal.next_scan(@type, @now) > @now
        RETURN 0;
    IF EXISTS (SELECT * FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @now)
        RETURN 1;
    IF mq_internal.next_due(@type) <= @now
        RETURN 1;
    RETURN 0;
END;

-- has_room: whether the limits of a type allow a claim to take a message now.
-- Returns: 1 or 0; also 0 while a claim of the type has changed its row of mq.limited and is not committed
CREATE OR ALTER FUNCTION mq_internal.has_room (@type nvarchar(400), @now datetime2(7))
RETURNS bit
AS
BEGIN
    DECLARE @max_active int, @rate int, @seconds int, @active int, @full_at datetime2(6);
    SELECT @max_active = max_active, @rate = rate, @seconds = rate_seconds FROM mq_internal.policy(@type);
    IF @max_active = 0 AND @rate = 0
        RETURN 1;
    SELECT @active = active, @full_at = full_at FROM mq.limited WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type;
    IF @active IS NULL
        RETURN 0;
    -- The next claim corrects a bucket whose full_at is more than one period ahead because the clock was set back.
    IF @rate > 0 AND @full_at <= DATEADD(SECOND, @seconds, @now) AND mq_internal.tokens(@full_at, @now, @rate, @seconds) = 0
        RETURN 0;
    IF @max_active = 0 OR @active < @max_active
        RETURN 1;
    SELECT @active = @active - COALESCE(SUM(places), 0) FROM mq.freed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type;
    IF @active < @max_active
        RETURN 1;
    -- The next claim rescues the expired batch.
    IF EXISTS (SELECT * FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @now)
        RETURN 1;
    RETURN 0;
END;

-- spend: record the messages that a claim of a type with limits has taken.
-- Arguments: @type, @size (messages, at most as many as allowance returned), @counted (1: they count as active and are
--     recorded in their batch; 0: a take, which keeps the type's row locked until it commits)
CREATE OR ALTER PROCEDURE mq_internal.spend
    @type nvarchar(400), @size int, @counted bit
AS
BEGIN
    DECLARE @rate int, @seconds int;
    SELECT @rate = rate, @seconds = rate_seconds FROM mq_internal.policy(@type);
    IF @counted = 1
        UPDATE mq.limited SET active = active + @size WHERE type = @type;
    IF @rate > 0
        UPDATE mq.limited SET full_at = mq_internal.full_after(full_at, SYSUTCDATETIME(), @size, @rate, @seconds) WHERE type = @type;
END;

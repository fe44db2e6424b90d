-- full_after: when a bucket is full again after tokens are spent.
-- Arguments: @full_at (when it was to be full), @now, @size (tokens to spend), @rate, @seconds: see tokens
CREATE OR ALTER FUNCTION mq_internal.full_after (@full_at datetime2(6), @now datetime2(6), @size int, @rate int, @seconds int)
RETURNS datetime2(6)
AS
BEGIN
    DECLARE @cost bigint = (CAST(1000000 AS bigint) * @seconds * @size + @rate - 1) / @rate;
    IF @full_at < @now
        SET @full_at = @now;
    ELSE IF @full_at > DATEADD(SECOND, @seconds, @now)
        SET @full_at = DATEADD(SECOND, @seconds, @now);
    RETURN DATEADD(MICROSECOND, @cost % 1000000, DATEADD(SECOND, @cost / 1000000, @full_at));
END;

-- tokens: how many whole tokens a bucket has.
-- Arguments: @full_at (when the bucket is full again), @now, @rate (tokens of a full bucket, and tokens gained per
--     @seconds), @seconds
--
-- Whole microseconds, rounded down; full_after rounds up. Rounding never allows an extra message.
CREATE OR ALTER FUNCTION mq_internal.tokens (@full_at datetime2(6), @now datetime2(6), @rate int, @seconds int)
RETURNS int
AS
BEGIN
    DECLARE @period bigint = CAST(1000000 AS bigint) * @seconds, @missing bigint = 0;
    IF @full_at > @now
        SET @missing = DATEDIFF_BIG(MICROSECOND, @now, @full_at);
    -- More than one period ahead: the clock was set back, or the limit was changed.
    IF @missing > @period
        SET @missing = @period;
    RETURN (@period - @missing) * @rate / @period;
END;

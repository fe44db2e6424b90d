-- tokens: how many tokens a bucket holds.
-- Arguments:   @full_at (when it is full again), @now, @rate (tokens that a full one holds, and gains in @seconds), @seconds
-- Returns:     0 to @rate
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq.tokens(@full_at, @now, 10, 60);
--
-- In whole microseconds and rounded down, full_after rounds up: no rounding lets more through.

CREATE OR ALTER FUNCTION mq.tokens (@full_at datetime2(6), @now datetime2(6), @rate int, @seconds int)
RETURNS int
AS
BEGIN
    DECLARE @period bigint = CAST(1000000 AS bigint) * @seconds, @missing bigint = 0;
    IF @full_at > @now
        SET @missing = DATEDIFF_BIG(MICROSECOND, @now, @full_at);
    -- Further ahead than one period: the clock was set back, or the limit was changed.
    IF @missing > @period
        SET @missing = @period;
    RETURN (@period - @missing) * @rate / @period;
END;
GO

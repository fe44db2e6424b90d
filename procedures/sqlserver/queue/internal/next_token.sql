-- next_token: when an empty bucket gets its next token.
-- Arguments: @full_at, @now, @rate, @seconds: as for tokens
-- Returns: the time; @now when there is a token now
CREATE OR ALTER FUNCTION mq_internal.next_token (@full_at datetime2(6), @now datetime2(6), @rate int, @seconds int)
RETURNS datetime2(6)
AS
BEGIN
    DECLARE @token datetime2(6);
    -- A bucket is full one period after it was empty.
    SET @token = DATEADD(SECOND, -@seconds, mq_internal.full_after(@full_at, @now, 1, @rate, @seconds));
    RETURN CASE WHEN @token > @now THEN @token ELSE @now END;
END;

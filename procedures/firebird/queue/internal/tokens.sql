-- tokens: how many tokens a bucket holds now.
-- Arguments:   p_full_at (when the bucket is full again, in microseconds since 1970; NULL: it is full), p_rate and p_seconds (the
--              bucket has room for p_rate tokens and gains as many every p_seconds), p_now (in microseconds too)
-- Returns:     0 to p_rate
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq_tokens(NULL, 100, 60, mq_microseconds()) FROM rdb$database; -- 100
--
-- A time further ahead than p_seconds was written before the clock was set back, or p_seconds became less. The bucket counts as
-- empty, and who sees that writes it anew.

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_tokens (
    p_full_at bigint,
    p_rate integer,
    p_seconds integer,
    p_now bigint
)
RETURNS bigint
AS
DECLARE v_period bigint;
BEGIN
    v_period = p_seconds * 1000000;
    p_full_at = MINVALUE(MAXVALUE(COALESCE(p_full_at, p_now), p_now), p_now + v_period);
    -- A division of integers leaves the fraction out.
    RETURN (p_now + v_period - p_full_at) * p_rate / v_period;
END^

SET TERM ; ^

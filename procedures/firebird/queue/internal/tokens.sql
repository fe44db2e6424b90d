-- tokens: how many whole tokens a bucket has.
-- Arguments:   p_full_at (when the bucket is full again, in microseconds since 1970; NULL: it is full), p_rate (tokens of a
--              full bucket, and tokens gained per p_seconds), p_seconds, p_now (in microseconds too)
-- Returns:     0 to p_rate
--
-- A p_full_at more than p_seconds ahead was written before the clock was set back or p_seconds became less. The bucket then
-- counts as empty, and the caller writes it again.
CREATE OR ALTER FUNCTION imq_tokens (p_full_at bigint, p_rate integer, p_seconds integer, p_now bigint)
RETURNS bigint
AS
DECLARE v_period bigint;
BEGIN
    v_period = p_seconds * 1000000;
    p_full_at = MINVALUE(MAXVALUE(COALESCE(p_full_at, p_now), p_now), p_now + v_period);
    -- Integer division rounds down.
    RETURN (p_now + v_period - p_full_at) * p_rate / v_period;
END

-- full_after: when a bucket is full again after p_n tokens are spent; the other arguments are those of tokens.
CREATE OR ALTER FUNCTION imq_full_after (p_full_at bigint, p_rate integer, p_seconds integer, p_now bigint, p_n integer)
RETURNS bigint
AS
DECLARE v_period bigint;
BEGIN
    v_period = p_seconds * 1000000;
    p_full_at = MINVALUE(MAXVALUE(COALESCE(p_full_at, p_now), p_now), p_now + v_period);
    -- Rounded up: no token comes early.
    RETURN p_full_at + (p_n * v_period + p_rate - 1) / p_rate;
END

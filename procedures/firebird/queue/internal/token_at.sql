-- token_at: when an empty bucket gets its next token, in UTC; the arguments are those of tokens.
CREATE OR ALTER FUNCTION imq_token_at (p_full_at bigint, p_rate integer, p_seconds integer, p_now bigint)
RETURNS timestamp
AS
DECLARE v_period bigint;
BEGIN
    v_period = p_seconds * 1000000;
    p_full_at = MINVALUE(MAXVALUE(COALESCE(p_full_at, p_now), p_now), p_now + v_period) - v_period
        + (v_period + p_rate - 1) / p_rate;
    -- Rounded up to a whole millisecond.
    RETURN DATEADD((p_full_at + 999) / 1000 MILLISECOND TO CAST('1970-01-01' AS timestamp));
END

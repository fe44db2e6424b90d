-- full_after: when a bucket is full again after tokens are spent.
-- Arguments: p_full_at (when it was to be full; NULL: it is full)
-- Returns: the time; with a p_count of 1, this time minus p_rate_seconds is when the bucket has a token
--
-- Whole microseconds, rounded up: rounding never allows an extra message.
CREATE OR REPLACE FUNCTION mq_internal.full_after(
    p_full_at timestamptz, p_now timestamptz, p_count bigint, p_rate bigint, p_rate_seconds bigint
) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
    v_gain bigint := (p_count * (p_rate_seconds * 1000000::bigint) + p_rate - 1) / p_rate;
BEGIN
    RETURN least(greatest(p_full_at, p_now), p_now + make_interval(secs => p_rate_seconds))
        + make_interval(secs => v_gain / 1000000.0);
END
$$;

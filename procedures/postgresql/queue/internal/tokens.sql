-- tokens: how many whole tokens a bucket has.
-- Arguments: p_full_at (when the bucket is full again; NULL: it is full), p_rate (tokens of a full bucket, and tokens
--     gained per p_rate_seconds)
--
-- Whole microseconds, rounded down. A p_full_at more than one period ahead was written before the clock was set back or the
-- period became shorter. The bucket then counts as empty, and the caller writes it again.
CREATE OR REPLACE FUNCTION mq_internal.tokens(
    p_full_at timestamptz, p_now timestamptz, p_rate bigint, p_rate_seconds bigint
) RETURNS integer
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_period bigint := p_rate_seconds * 1000000::bigint;
    v_missing bigint := coalesce(round(extract(epoch FROM p_full_at - p_now) * 1000000)::bigint, 0);
BEGIN
    RETURN (v_period - least(greatest(v_missing, 0), v_period)) * p_rate / v_period;
END
$$;

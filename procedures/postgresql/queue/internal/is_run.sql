-- is_run: whether a list of ids is one run: each id is one higher than the id before it.
-- Arguments:   p_ids (of a batch, in claim order)
-- Returns:     true for a run of two or more ids: one scan of an index range finds them in this order
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq.is_run(ARRAY[17, 18, 19]);

CREATE OR REPLACE FUNCTION mq.is_run(
    p_ids bigint[]
) RETURNS boolean
LANGUAGE plpgsql
IMMUTABLE
AS $$
DECLARE
    v_count integer := cardinality(p_ids);
BEGIN
    -- The ends tell most other lists apart, at no cost.
    IF v_count = 1 OR p_ids[v_count] - p_ids[1] <> v_count - 1 THEN
        RETURN false;
    END IF;
    RETURN p_ids = ARRAY(SELECT generate_series(p_ids[1], p_ids[v_count]));
END
$$;

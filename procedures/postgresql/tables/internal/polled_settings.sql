-- polled_settings: the settings of an adopted table, and nothing of its rows; every caller may read them.
-- Arguments:   p_name; or, with NULL, p_batch_key (of a claim)
-- Returns:     its row, without the place that claims have come to; all NULL when there is none
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT * FROM mq.polled_settings('orders', NULL);

CREATE OR REPLACE FUNCTION mq.polled_settings(
    p_name text,
    p_batch_key uuid
) RETURNS mq.polled
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
DECLARE
    v_polled mq.polled;
BEGIN
    SELECT * INTO v_polled
    FROM mq.polled
    WHERE name = coalesce(p_name, (SELECT b.name FROM mq.polled_batch AS b WHERE b.batch_key = p_batch_key));
    v_polled.place := NULL;
    v_polled.place_hash := NULL;
    v_polled.copies := NULL;
    RETURN v_polled;
END
$$;

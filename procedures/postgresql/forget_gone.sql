-- forget_gone: forget waiting rows of an adopted table that are not there any more; what others have locked is left to
-- the next claim.
-- Arguments:   p_polled, p_shape (polled_shape), p_ids (of claims that wait), p_found (those of them that were found)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT mq.forget_gone(v_polled, v_shape, ARRAY[17, 18], ARRAY[18]);

CREATE OR REPLACE FUNCTION mq.forget_gone(
    p_polled mq.polled,
    p_shape jsonb,
    p_ids bigint[],
    p_found bigint[]
) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_status text := CASE
        WHEN p_polled.status_column IS NULL THEN 'true'
        ELSE format('t.%1$s IS NOT DISTINCT FROM CASE WHEN e.active THEN $2::%2$s ELSE $3::%2$s END', p_shape->>'status',
            p_shape->>'status_type') END;
BEGIN
    EXECUTE format('DELETE FROM mq.polled_row AS e
        WHERE e.id = ANY ($1) AND NOT EXISTS (
            SELECT FROM jsonb_populate_record(NULL::%1$s, e.ident) AS r JOIN %1$s AS t ON %2$s AND %3$s
        )', p_shape->>'quoted', p_shape->>'match', v_status)
    USING ARRAY(SELECT unnest(p_ids) EXCEPT SELECT unnest(p_found)), p_polled.active_value, p_polled.ready_value;
END
$$;

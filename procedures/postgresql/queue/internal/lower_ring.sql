-- lower_ring: a message comes back below the low-water mark of a ring: let claims search for it.
-- Arguments:   p_type, p_id (the lowest that comes back)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT mq.lower_ring('crawl', 17);

CREATE OR REPLACE FUNCTION mq.lower_ring(
    p_type text,
    p_id bigint
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    v_low mq.ring;
BEGIN
    SELECT * INTO v_low FROM mq.ring WHERE type = p_type AND reader = '' ORDER BY type, reader, n DESC, after_id DESC LIMIT 1;
    IF v_low.low_until > clock_timestamp() AND p_id <= v_low.after_id THEN
        INSERT INTO mq.ring (n, after_id, low_until, promoted_to, type, reader)
        -- Two higher, so that it also counts over the mark that a claim at work at this moment will leave.
        VALUES (v_low.n + 2, p_id - 1, v_low.low_until, v_low.promoted_to, p_type, '');
    END IF;
END
$$;

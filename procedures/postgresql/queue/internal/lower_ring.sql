-- lower_ring: lower the low-water mark of a ring when a message becomes ready below it.
-- Arguments:   p_type, p_id (the lowest id that became ready)

CREATE OR REPLACE FUNCTION mq_internal.lower_ring(
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
        -- n + 2: a concurrent claim may write n + 1, and that mark must not count.
        VALUES (v_low.n + 2, p_id - 1, v_low.low_until, v_low.promoted_to, p_type, '');
    END IF;
END
$$;

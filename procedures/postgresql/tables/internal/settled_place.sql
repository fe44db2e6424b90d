-- settled_place: up to which order value rows of a table without a status may be claimed: what was the highest late_seconds ago.
-- Arguments:   p_polled (whose row the caller has locked), p_shape (polled_shape), p_now
-- Returns:     the value as text, NULL for none yet
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT mq.settled_place(v_polled, v_shape, clock_timestamp());

CREATE OR REPLACE FUNCTION mq.settled_place(
    p_polled mq.polled,
    p_shape jsonb,
    p_now timestamptz
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    v_marks record;
    v_highest text;
BEGIN
    IF p_polled.late_seconds > 0 THEN
        SELECT * INTO v_marks FROM mq.polled_marks(p_polled.name, p_shape->>'pass', p_now, NULL);
        IF NOT v_marks.is_old THEN
            RETURN v_marks.settled;
        END IF;
    END IF;
    EXECUTE format('SELECT t.%1$s::text FROM %2$s AS t ORDER BY t.%1$s DESC LIMIT 1', p_shape->>'order', p_shape->>'quoted')
    INTO v_highest;
    IF p_polled.late_seconds = 0 THEN
        RETURN v_highest;
    END IF;
    SELECT * INTO v_marks FROM mq.polled_marks(p_polled.name, p_shape->>'pass', p_now, v_highest);
    RETURN v_marks.settled;
END
$$;

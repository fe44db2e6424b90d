-- settled_place: return the order value up to which rows of a table without a status may be claimed.
-- Returns: the highest order value of late_seconds ago, as text; NULL when there is none yet
CREATE OR REPLACE FUNCTION mq_internal.settled_place(p_polled mq.polled, p_shape jsonb, p_now timestamptz) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    v_marks record;
    v_highest text;
BEGIN
    IF p_polled.late_seconds > 0 THEN
        SELECT * INTO v_marks FROM mq_internal.polled_marks(p_polled.name, p_shape->>'pass', p_now, NULL);
        IF NOT v_marks.is_old THEN
            RETURN v_marks.settled;
        END IF;
    END IF;
    EXECUTE format('SELECT t.%1$s::text FROM %2$s AS t ORDER BY t.%1$s DESC LIMIT 1', p_shape->>'order', p_shape->>'quoted')
    INTO v_highest;
    IF p_polled.late_seconds = 0 THEN
        RETURN v_highest;
    END IF;
    SELECT * INTO v_marks FROM mq_internal.polled_marks(p_polled.name, p_shape->>'pass', p_now, v_highest);
    RETURN v_marks.settled;
END
$$;

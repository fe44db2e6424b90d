-- settled_place: up to which order value rows of a table without a status may be claimed: what was the highest late_seconds ago.
-- Arguments:   p_polled (whose row the caller has locked), p_shape (polled_shape), p_now
-- Returns:     the value as text, NULL for none yet
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT mq.settled_place(v_polled, mq.polled_shape(v_polled), clock_timestamp());

CREATE OR REPLACE FUNCTION mq.settled_place(
    p_polled mq.polled,
    p_shape jsonb,
    p_now timestamptz
) RETURNS text
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_seen timestamptz;
    v_settled text;
    v_look text := format('SELECT t.%1$s::text FROM %2$s AS t ORDER BY t.%1$s DESC LIMIT 1', p_shape->>'order',
        p_shape->>'quoted');
BEGIN
    IF p_polled.late_seconds = 0 THEN
        EXECUTE v_look INTO v_settled;
        RETURN v_settled;
    END IF;
    SELECT max(seen_at) INTO v_seen FROM mq.polled_mark WHERE name = p_polled.name;
    IF coalesce(v_seen, '-infinity') <= p_now - make_interval(secs => greatest(1, p_polled.late_seconds / 10)) THEN
        EXECUTE v_look INTO v_settled;
        IF v_settled IS NOT NULL THEN
            INSERT INTO mq.polled_mark (name, seen_at, place) VALUES (p_polled.name, p_now, v_settled);
        END IF;
    END IF;
    v_settled := NULL;
    SELECT place, seen_at INTO v_settled, v_seen
    FROM mq.polled_mark
    WHERE name = p_polled.name AND seen_at <= p_now - make_interval(secs => p_polled.late_seconds)
    ORDER BY seen_at DESC LIMIT 1;
    DELETE FROM mq.polled_mark WHERE name = p_polled.name AND seen_at < v_seen AND v_settled IS NOT NULL;
    RETURN v_settled;
END
$$;

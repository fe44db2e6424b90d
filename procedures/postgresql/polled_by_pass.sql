-- polled_by_pass: an adopted table, for a caller who has shown the rights that its claims need.
-- Arguments:   p_name, p_pass (see my_pass), p_lock (lock its row: claims of one table take turns)
-- Returns:     its row
-- Errors:      50006 unsuitable_table
-- Transaction: joins the caller's
-- Example:     SELECT * FROM mq.polled_by_pass('orders', p_pass, false);

CREATE OR REPLACE FUNCTION mq.polled_by_pass(
    p_name text,
    p_pass text,
    p_lock boolean
) RETURNS mq.polled
LANGUAGE plpgsql
AS $$
DECLARE
    v_polled mq.polled;
BEGIN
    SELECT * INTO v_polled FROM mq.polled WHERE name = p_name;
    PERFORM mq.require_pass(p_pass, mq.relation_of(v_polled.schema_name, v_polled.table_name),
        mq.polled_need(v_polled), coalesce(v_polled.status_column, ''));
    IF p_lock THEN
        -- Again: others may have changed it before they let us have it.
        SELECT * INTO v_polled FROM mq.polled WHERE name = p_name FOR UPDATE;
    END IF;
    RETURN v_polled;
END
$$;

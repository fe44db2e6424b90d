-- lock_polled: lock a polling table's row; claims of the table, and changes to its settings, wait for each other.
-- Transaction: waits for transactions that have locked the row
CREATE OR REPLACE FUNCTION mq_internal.lock_polled(p_name text, p_pass text) RETURNS mq.polled
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_polled mq.polled;
BEGIN
    v_polled := mq_internal.polled_by_pass(p_name, p_pass, true);
    IF v_polled.name IS NULL THEN
        PERFORM mq_internal.raise_error('not_found', format('name: no table is adopted as %s', p_name));
    END IF;
    RETURN v_polled;
END
$$;

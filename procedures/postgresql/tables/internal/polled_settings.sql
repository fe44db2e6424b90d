-- polled_settings: return a polling table's settings, which every caller may read: they hold no data of the table.
-- Arguments: p_name; or NULL and p_batch_key (of a claim)
-- Returns: its row of mq.polled without the low-water mark; all NULL when there is no such polling table
CREATE OR REPLACE FUNCTION mq_internal.polled_settings(p_name text, p_batch_key uuid) RETURNS mq.polled
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
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

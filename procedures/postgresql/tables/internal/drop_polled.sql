-- drop_polled: delete a polling table's settings and all its entries.
-- Arguments: p_name, p_pass (see my_pass): for reading if the status column is gone; not needed if the table is gone or
--     replaced
-- Transaction: waits for claims of the table
CREATE OR REPLACE FUNCTION mq_internal.drop_polled(p_name text, p_pass text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET enable_seqscan = off SET jit = off AS $$
DECLARE
    v_polled mq.polled;
    v_table oid;
BEGIN
    SELECT * INTO v_polled FROM mq.polled WHERE name = p_name;
    v_table := mq_internal.relation_of(v_polled.table_schema, v_polled.table_name);
    IF v_table IS NOT NULL AND (v_table = v_polled.table_id OR v_polled.queue_id <> 'mq.polled'::regclass) THEN
        IF v_polled.status_column IS NULL OR EXISTS (
            SELECT FROM pg_attribute AS a WHERE a.attrelid = v_table AND a.attname = v_polled.status_column
        ) THEN
            PERFORM mq_internal.require_pass(p_pass, v_table, mq_internal.polled_need(v_polled), coalesce(v_polled.status_column, ''));
        ELSE
            PERFORM mq_internal.require_pass(p_pass, v_table, 'read', '');
        END IF;
    END IF;
    -- Wait for open claims, and block new ones.
    PERFORM FROM mq.polled WHERE name = p_name FOR UPDATE;
    DELETE FROM mq.polled_batch WHERE name = p_name;
    DELETE FROM mq.polled_row WHERE name = p_name;
    DELETE FROM mq.polled_mark WHERE name = p_name;
    DELETE FROM mq.polled WHERE name = p_name;
    RETURN FOUND::integer;
END
$$;

-- release_table: forget an adopted table: what is claimed gets its ready_value back, and nothing of the table is
-- claimed any more.
-- Arguments:   p_name
-- Returns:     count: 1, or 0 when there was none
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's; waits for claims of the table and for others that have locked claimed rows
-- Example:     SELECT mq.release_table('orders');

CREATE OR REPLACE FUNCTION mq.release_table(
    p_name text,
    OUT count bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    v_polled mq.polled;
    v_shape jsonb;
    v_ids bigint[];
    v_found record;
BEGIN
    PERFORM mq.require_name('name', p_name, false);
    count := 0;
    PERFORM FROM mq.polled WHERE name = p_name;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    v_polled := mq.lock_polled(p_name);
    DELETE FROM mq.polled_batch WHERE name = p_name;
    IF v_polled.active_value IS NOT NULL THEN
        SELECT array_agg(id ORDER BY id) INTO v_ids FROM mq.polled_row WHERE name = p_name AND active AND state <> 'E';
        BEGIN
            v_shape := mq.polled_shape(v_polled);
            SELECT array_agg(f.part) AS parts, array_agg(f.place) AS places
            INTO v_found
            FROM mq.find_rows(v_polled, v_shape, v_ids, false) AS f;
            PERFORM mq.write_rows(v_shape, false, v_polled.ready_value, v_found.parts, v_found.places);
        EXCEPTION WHEN SQLSTATE '50005' OR SQLSTATE '50006' THEN
            NULL;  -- the table is not there any more, or not as it was: then there is nothing to give back
        END;
    END IF;
    DELETE FROM mq.polled_row WHERE name = p_name;
    DELETE FROM mq.polled_mark WHERE name = p_name;
    DELETE FROM mq.polled WHERE name = p_name;
    GET DIAGNOSTICS count = ROW_COUNT;
END
$$;

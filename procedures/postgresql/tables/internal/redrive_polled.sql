-- redrive_polled: make dead rows of a polling table ready again, with their attempts set back to 0.
-- Arguments: p_id (of one row; NULL: up to p_size rows, those that died first)
-- Returns: how many rows
CREATE OR REPLACE FUNCTION mq_internal.redrive_polled(p_name text, p_id bigint, p_size bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_polled mq.polled;
    v_shape jsonb;
    v_ids bigint[];
    v_found record;
    v_errors text[];
    v_as_dead mq.polled;
BEGIN
    SELECT o.shape INTO v_shape FROM mq_internal.open_polled(p_name, NULL) AS o;
    v_polled := mq_internal.lock_polled(p_name, v_shape->>'pass');
    SELECT array_agg(d.id) INTO v_ids
    FROM (
        SELECT e.id FROM mq.my_polled_row AS e
        WHERE e.name = p_name AND e.state = 'E' AND (p_id IS NULL OR e.id = p_id)
        ORDER BY e.run_at, e.id LIMIT p_size
    ) AS d;
    IF v_polled.status_column IS NOT NULL AND v_ids IS NOT NULL THEN
        -- Dead rows are at error_value or, if the table refused that, still at their previous status.
        v_as_dead := v_polled;
        v_as_dead.ready_value := v_polled.error_value;
        SELECT array_agg(f.id) AS ids, array_agg(f.part) AS parts, array_agg(f.place) AS places INTO v_found
        FROM mq_internal.find_rows(v_as_dead, v_shape, v_ids, false) AS f;
        v_errors := mq_internal.write_rows(v_shape, false, v_polled.ready_value, v_found.parts, v_found.places);
        PERFORM mq_internal.forget_rows(p_name, v_shape->>'pass', ARRAY(SELECT unnest(v_ids) EXCEPT SELECT unnest(v_found.ids)));
        SELECT array_agg(u.id) INTO v_ids FROM unnest(v_found.ids, v_errors) AS u (id, error) WHERE u.error IS NULL;
    END IF;
    RETURN mq_internal.revive_rows(p_name, v_shape->>'pass', v_ids);
END
$$;

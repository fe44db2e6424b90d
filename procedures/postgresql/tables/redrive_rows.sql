-- redrive_rows: retry dead rows of a polling table, with their attempts set back to 0.
-- Arguments:   p_name (1 to 200 characters), p_id (of one row, as peek_rows lists it; NULL: all, those that died first), p_size
--              (1 to 10,000; NULL: 1,000)
-- Returns:     affected: rows that will be retried
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for claims of the table and for transactions that
--              have locked these rows
-- Example:     SELECT mq.redrive_rows('orders');
CREATE OR REPLACE FUNCTION mq.redrive_rows(
    p_name text,
    p_id bigint DEFAULT NULL,
    p_size bigint DEFAULT NULL,
    OUT affected bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_polled mq.polled;
    v_shape jsonb;
    v_ids bigint[];
    v_found record;
    v_errors text[];
    v_as_dead mq.polled;
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    SELECT o.shape INTO v_shape FROM mq_internal.open_polled(p_name, NULL) AS o;
    v_polled := mq_internal.lock_polled(p_name, v_shape->>'pass');
    SELECT array_agg(d.id) INTO v_ids
    FROM (
        SELECT e.id FROM mq.my_polled_row AS e
        WHERE e.name = p_name AND e.state = 'E' AND (p_id IS NULL OR e.id = p_id)
        ORDER BY e.run_at, e.id LIMIT coalesce(p_size, 1000)
    ) AS d;
    affected := 0;
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
    affected := mq_internal.revive_rows(p_name, v_shape->>'pass', v_ids);
END
$$;

-- unadopt_table: forget a polling table: claimed rows get their ready_value back, and no more rows are claimed.
-- Arguments:   p_name (1 to 200 characters)
-- Returns:     affected: 1; 0 when there is no such polling table
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for claims of the table and for transactions that
--              have locked claimed rows
-- Example:     SELECT mq.unadopt_table('orders');
CREATE OR REPLACE FUNCTION mq.unadopt_table(
    p_name text,
    OUT affected bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_polled mq.polled;
    v_table oid;
    v_need text;
    v_shape jsonb;
    v_ids bigint[];
    v_found record;
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    affected := 0;
    v_polled := mq_internal.polled_settings(p_name, NULL);
    IF v_polled.name IS NULL THEN
        RETURN;
    END IF;
    v_table := mq_internal.relation_of(v_polled.table_schema, v_polled.table_name);
    IF v_table <> v_polled.table_id AND v_polled.queue_id = 'mq.polled'::regclass THEN
        v_table := NULL;  -- another table has this name now
    END IF;
    v_need := CASE WHEN EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = v_table AND a.attname = v_polled.status_column)
        OR v_polled.status_column IS NULL THEN mq_internal.polled_need(v_polled) ELSE 'read' END;
    IF v_table IS NOT NULL THEN
        PERFORM mq_internal.require_rights(v_table, v_need, coalesce(v_polled.status_column, ''));
    END IF;
    BEGIN
        SELECT o.shape INTO v_shape FROM mq_internal.open_polled(p_name, NULL) AS o;
        v_polled := mq_internal.lock_polled(p_name, v_shape->>'pass');
        IF v_polled.active_value IS NOT NULL THEN
            SELECT array_agg(id ORDER BY id) INTO v_ids FROM mq.my_polled_row WHERE name = p_name AND active;
            SELECT array_agg(f.part) AS parts, array_agg(f.place) AS places INTO v_found
            FROM mq_internal.find_rows(v_polled, v_shape, v_ids, false) AS f;
            PERFORM mq_internal.write_rows(v_shape, false, v_polled.ready_value, v_found.parts, v_found.places);
        END IF;
    EXCEPTION WHEN SQLSTATE '50005' OR SQLSTATE '50006' THEN
        NULL;  -- the table was dropped or changed: there is nothing to give back
    END;
    affected := mq_internal.drop_polled(p_name, (
        SELECT m.pass FROM mq.my_pass AS m
        WHERE m.id = v_table AND m.need = v_need
            AND m.written = CASE v_need WHEN 'read' THEN '' WHEN 'delete' THEN '' ELSE v_polled.status_column END
    ));
END
$$;

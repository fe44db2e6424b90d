-- claim_rows: claim up to p_size rows of a polling table under one new batch key.
-- Arguments:   p_name (1 to 200 characters), p_size (1 to 10,000; NULL: 1), p_consumer (1 to 200 characters; NULL: the
--              application name), p_lease_seconds (1 to 86,400; NULL: 60)
-- Returns:     id, row_key, row_data (JSON objects), attempt, batch_key, lease_until: rows to retry first, then new rows in their
--              order; no rows when none is ready
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; claims of one table wait for each other until it ends;
--              skips rows that others have locked
-- Example:     SELECT * FROM mq.claim_rows('orders', 100, 'worker-1', 60);
--
-- It runs with the rights of its caller. The caller needs SELECT on the table, UPDATE if there is a status, and DELETE if
-- rows are deleted. The queue's own tables are written by functions that require a pass (see my_pass).
--
-- An entry is a row of mq.polled_row. It records one claimed, waiting or dead row of the table.
CREATE OR REPLACE FUNCTION mq.claim_rows(
    p_name text,
    p_size bigint DEFAULT NULL,
    p_consumer text DEFAULT NULL,
    p_lease_seconds bigint DEFAULT NULL
) RETURNS TABLE (
    id bigint,
    row_key text,
    row_data text,
    attempt integer,
    batch_key uuid,
    lease_until timestamptz
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_polled mq.polled;
    v_shape jsonb;
    v_pass text;
    v_left integer := coalesce(p_size, 1);
    v_now timestamptz;
    v_again record;
    v_new record;
    v_errors text[];
    v_held record;
    v_refused record;
BEGIN
    PERFORM mq_internal.require_name('name', p_name, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    PERFORM mq_internal.require_name('consumer', p_consumer, true);
    PERFORM mq_internal.require_range('lease_seconds', p_lease_seconds, 1, 86400);
    SELECT o.shape INTO v_shape FROM mq_internal.open_polled(p_name, NULL) AS o;
    v_pass := v_shape->>'pass';
    v_polled := mq_internal.lock_polled(p_name, v_pass);
    v_now := clock_timestamp();

    SELECT * INTO v_again FROM mq_internal.take_due(v_polled, v_shape, v_left, v_now);
    v_left := v_left - cardinality(v_again.ids);
    SELECT * INTO v_new FROM mq_internal.take_new(v_polled, v_shape, v_left, v_now);

    IF v_polled.active_value IS NOT NULL THEN
        -- Lost rows are at active_value already.
        v_errors := mq_internal.write_rows(v_shape, false, v_polled.active_value, v_again.parts || v_new.parts[:v_new.fresh],
            v_again.places || v_new.places[:v_new.fresh]) || array_fill(NULL::text, ARRAY[cardinality(v_new.hashes) - v_new.fresh]);
    ELSE
        v_errors := array_fill(NULL::text, ARRAY[cardinality(v_again.ids) + cardinality(v_new.hashes)]);
    END IF;
    IF cardinality(v_errors) = 0 THEN
        RETURN;
    END IF;
    SELECT * INTO v_held
    FROM mq_internal.hold_rows(p_name, v_pass, mq_internal.consumer_name(p_consumer), coalesce(p_lease_seconds, 60), v_again.ids, v_new.hashes,
        v_new.idents, v_new.keys, ARRAY(
            SELECT v_polled.active_value IS NOT NULL AND e.error IS NULL FROM unnest(v_errors) WITH ORDINALITY AS e (error, n)
            ORDER BY e.n
        ));
    SELECT array_agg(u.id) AS ids, array_agg(u.error) AS errors INTO v_refused
    FROM unnest(v_held.ids, v_errors) AS u (id, error) WHERE u.error IS NOT NULL;
    IF v_refused.ids IS NOT NULL THEN
        -- A row whose claim the table refuses must not stop the others.
        PERFORM mq_internal.fail_rows(v_polled, v_shape, v_refused.ids, array_fill(NULL::integer, ARRAY[cardinality(v_refused.ids)]),
            v_refused.errors);
    END IF;
    RETURN QUERY
    SELECT u.id, u.key_json, u.row_json, u.attempts, v_held.batch_key, v_held.lease_until
    FROM unnest(v_held.ids, v_held.attempts, v_again.keys || v_new.keys, v_again.rows || v_new.rows, v_errors)
        AS u (id, attempts, key_json, row_json, error)
    WHERE u.error IS NULL
    ORDER BY u.id;
END
$$;

-- finish_rows: finish a batch of rows, or a part of it: all are done except for its failures.
-- Arguments:   p_batch_key, p_outcomes (a JSON object per line; error: the row failed; retry_after_seconds: when to retry
--              it, without it 5 seconds, doubled for each attempt up to an hour, with jitter; dead: 1 for never;
--              released: 1 gives it back), p_keep_others (1: only what the list names is finished, and the others stay claimed;
--              NULL: 0)
-- Returns:     done, failed (to be retried, or given back), dead, gone (changed or deleted by others): counts of rows
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50008 lease_lost
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for transactions that have locked these rows
-- Example:     SELECT * FROM mq.finish_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"id":17,"error":"busy"}');
CREATE OR REPLACE FUNCTION mq.finish_rows(
    p_batch_key uuid,
    p_outcomes text DEFAULT NULL,
    p_keep_others bigint DEFAULT NULL,
    OUT done bigint,
    OUT failed bigint,
    OUT dead bigint,
    OUT gone bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_polled mq.polled;
    v_shape jsonb;
    v_opened record;
    v_held bigint[];
    v_fails record;
    v_ids bigint[];
    v_found record;
    v_errors text[];
    v_counts record;
BEGIN
    done := 0;
    failed := 0;
    dead := 0;
    gone := 0;
    IF p_batch_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'batch_key: must not be NULL');
    END IF;
    PERFORM mq_internal.require_range('keep_others', p_keep_others, 0, 1);
    SELECT o.polled, o.shape INTO v_opened FROM mq_internal.open_polled(NULL, p_batch_key) AS o;
    v_polled := v_opened.polled;
    v_shape := v_opened.shape;
    IF v_shape IS NOT NULL THEN
        v_held := mq_internal.drop_polled_batch(v_polled.name, v_shape->>'pass', p_batch_key,
            CASE WHEN p_keep_others = 1 THEN ARRAY(SELECT f.id FROM mq_internal.read_outcomes(p_outcomes) AS f) END);
    END IF;
    IF v_held IS NULL THEN
        PERFORM mq_internal.raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    END IF;
    SELECT array_agg(f.id) AS ids, array_agg(f.retry) AS retries, array_agg(f.error) AS errors INTO v_fails
    FROM mq_internal.read_outcomes(p_outcomes) AS f
    JOIN unnest(v_held) AS h (id) ON h.id = f.id
    WHERE f.error IS NOT NULL OR f.retry = -2;
    SELECT array_agg(h.id ORDER BY h.id) INTO v_ids
    FROM unnest(v_held) AS h (id)
    LEFT JOIN unnest(v_fails.ids) AS f (id) ON f.id = h.id
    WHERE f.id IS NULL;

    IF v_shape->>'shape' NOT IN ('b', 'd') AND v_ids IS NOT NULL THEN
        SELECT array_agg(f.id) AS ids, array_agg(f.part) AS parts, array_agg(f.place) AS places INTO v_found
        FROM mq_internal.find_rows(v_polled, v_shape, v_ids, false) AS f;
        gone := cardinality(v_ids) - coalesce(cardinality(v_found.ids), 0);
        v_errors := mq_internal.write_rows(v_shape, v_polled.on_complete = 'delete', v_polled.done_value, v_found.parts, v_found.places);
        -- A row that the table refuses has failed.
        SELECT v_fails.ids || array_agg(u.id) AS ids, v_fails.retries || array_agg(NULL::integer) AS retries,
            v_fails.errors || array_agg(u.error) AS errors INTO v_fails
        FROM unnest(v_found.ids, v_errors) AS u (id, error)
        WHERE u.error IS NOT NULL;
    END IF;
    done := mq_internal.forget_rows(v_polled.name, v_shape->>'pass', ARRAY(SELECT unnest(v_ids) EXCEPT SELECT unnest(v_fails.ids))) - gone;
    IF v_fails.ids IS NOT NULL THEN
        SELECT * INTO v_counts FROM mq_internal.fail_rows(v_polled, v_shape, v_fails.ids, v_fails.retries, v_fails.errors);
        failed := v_counts.failed;
        dead := v_counts.dead;
        gone := gone + v_counts.gone;
    END IF;
END
$$;

-- release_rows: give claimed rows back without counting an attempt.
-- Arguments:   p_batch_key
-- Returns:     affected: rows given back; 0 when the lease was lost
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for transactions that have locked these rows
-- Example:     SELECT mq.release_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');
CREATE OR REPLACE FUNCTION mq.release_rows(
    p_batch_key uuid,
    OUT affected bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET enable_seqscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_opened record;
    v_ids bigint[];
BEGIN
    IF p_batch_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'batch_key: must not be NULL');
    END IF;
    affected := 0;
    SELECT o.polled, o.shape INTO v_opened FROM mq_internal.open_polled(NULL, p_batch_key) AS o;
    IF v_opened.shape IS NOT NULL THEN
        v_ids := mq_internal.drop_polled_batch((v_opened.polled).name, v_opened.shape->>'pass', p_batch_key, NULL);
    END IF;
    IF v_ids <> '{}' THEN
        SELECT f.failed INTO affected
        FROM mq_internal.fail_rows(v_opened.polled, v_opened.shape, v_ids, array_fill(-2, ARRAY[cardinality(v_ids)]),
            array_fill(NULL::text, ARRAY[cardinality(v_ids)])) AS f;
    END IF;
END
$$;

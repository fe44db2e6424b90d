-- release_rows: give claimed rows back without costing an attempt.
-- Arguments:   p_batch_key
-- Returns:     count of rows given back (0: the batch was lost)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's; waits for others that have locked these rows
-- Example:     SELECT mq.release_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

CREATE OR REPLACE FUNCTION mq.release_rows(
    p_batch_key uuid,
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
    v_ids bigint[];
BEGIN
    count := 0;
    v_polled := mq.drop_polled_batch(p_batch_key);
    SELECT array_agg(id ORDER BY id) INTO v_ids FROM mq.polled_row WHERE batch_key = p_batch_key;
    IF v_ids IS NOT NULL THEN
        SELECT f.failed INTO count
        FROM mq.fail_rows(v_polled, mq.polled_shape(v_polled), v_ids, array_fill(-2, ARRAY[cardinality(v_ids)]),
            array_fill(NULL::text, ARRAY[cardinality(v_ids)])) AS f;
    END IF;
END
$$;

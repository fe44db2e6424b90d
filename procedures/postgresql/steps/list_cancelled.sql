-- list_cancelled: which messages of a batch were cancelled; for heartbeats.
-- Arguments:   p_batch_key (the key that the claim returned)
-- Returns:     id; no row when none was cancelled, or the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq.list_cancelled('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');
CREATE OR REPLACE FUNCTION mq.list_cancelled(p_batch_key uuid) RETURNS TABLE (id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
BEGIN
    IF p_batch_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'batch_key: must not be NULL');
    END IF;
    RETURN QUERY
        SELECT m.id FROM mq.batch AS b CROSS JOIN LATERAL (
            SELECT c.id FROM mq.message AS c WHERE c.id = ANY (b.ids) AND c.cancelled_at IS NOT NULL ORDER BY c.id
        ) AS m WHERE b.batch_key = p_batch_key;
END
$$;

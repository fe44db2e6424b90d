-- release_batch: release all messages that the batch key still holds: they are ready again, and the attempt does not count.
-- Arguments:   p_batch_key (the key that the claim returned)
-- Returns:     affected: messages released; 0 when the lease was lost
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's; waits for a transaction that has saved a step
-- Example:     SELECT mq.release_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');
CREATE OR REPLACE FUNCTION mq.release_batch(p_batch_key uuid, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_batch mq.batch;
BEGIN
    IF p_batch_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'batch_key: must not be NULL');
    END IF;
    DELETE FROM mq.batch WHERE batch_key = p_batch_key RETURNING * INTO v_batch;
    IF FOUND THEN
        -- A handler's open transaction may have saved a step: others would not see it, and do its work again.
        PERFORM FROM mq.message WHERE id = ANY (v_batch.ids) FOR UPDATE;
        PERFORM mq_internal.put_back(mq_internal.policy(v_batch.type), v_batch.ids,
            ARRAY(SELECT (unnest(v_batch.attempts) - 1)::smallint));
    END IF;
    affected := coalesce(cardinality(v_batch.ids), 0);
END
$$;

-- complete: complete one claimed message: delete it, or archive it if the queue's policy is archive.
-- Arguments:   p_id, p_batch_key (the key that its claim returned)
-- Returns:     affected: 1
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument,
--              50008 lease_lost (the batch key does not hold the message: roll back)
-- Transaction: joins the caller's
-- Example:     SELECT mq.complete(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');
CREATE OR REPLACE FUNCTION mq.complete(p_id bigint, p_batch_key uuid, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_held record;
BEGIN
    SELECT * INTO v_held FROM mq_internal.leave_batch(p_id, p_batch_key);
    PERFORM mq_internal.complete_messages(mq_internal.policy(v_held.type), ARRAY[p_id], ARRAY[v_held.attempt], v_held.consumer);
    affected := 1;
END
$$;

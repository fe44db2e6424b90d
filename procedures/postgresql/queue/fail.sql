-- fail: record a failed attempt: retry the message after a delay, or dead-letter it when its attempts are used up.
-- Arguments:   p_id, p_batch_key (the key that its claim returned), p_error (cut to 4,000 characters),
--              p_retry_after_seconds (0 to 315,360,000; NULL: the queue's backoff)
-- Returns:     state: N (will be retried) or E (dead letter); NULL: it was cancelled, and is deleted
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument,
--              50008 lease_lost (the batch key does not hold the message: roll back)
-- Transaction: joins the caller's
-- Example:     SELECT mq.fail(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 'connection refused');
CREATE OR REPLACE FUNCTION mq.fail(
    p_id bigint,
    p_batch_key uuid,
    p_error text DEFAULT NULL,
    p_retry_after_seconds bigint DEFAULT NULL,
    OUT state text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_held record;
    v_dead bigint[];
BEGIN
    PERFORM mq_internal.require_range('retry_after_seconds', p_retry_after_seconds, 0, 315360000);
    SELECT * INTO v_held FROM mq_internal.leave_batch(p_id, p_batch_key);
    v_dead := mq_internal.fail_messages(mq_internal.policy(v_held.type), v_held.consumer, ARRAY[p_id], ARRAY[v_held.attempt],
        ARRAY[p_retry_after_seconds], ARRAY[p_error]);
    state := CASE WHEN v_dead IS NOT NULL THEN 'E' WHEN EXISTS (SELECT FROM mq.message AS m WHERE m.id = p_id) THEN 'N' END;
END
$$;

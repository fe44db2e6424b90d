-- fail: record a failed attempt: retry the message after a delay, or dead-letter it when its attempts are used up.
-- Arguments:   p_id, p_batch_key (NULL: the message is ready, after a take was rolled back), p_error (cut to 4,000
--              characters), p_retry_after_seconds (0 to 315,360,000; NULL: the queue's backoff; -1: dead-letter it now)
-- Returns:     state: N (will be retried) or E (dead letter); NULL when the batch key does not hold the message, and
--              nothing has changed
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
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
    v_queue mq.queue;
    v_held record;
BEGIN
    IF p_id IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    PERFORM mq_internal.require_range('retry_after_seconds', p_retry_after_seconds, -1, 315360000);
    IF p_batch_key IS NULL THEN
        SELECT * INTO v_held FROM mq_internal.remove_ready(p_id);
    ELSE
        SELECT * INTO v_held FROM mq_internal.leave_batch(p_id, p_batch_key);
    END IF;
    IF v_held.type IS NULL THEN
        RETURN;
    END IF;
    v_queue := mq_internal.policy(v_held.type);
    IF p_batch_key IS NULL AND v_queue.grouped THEN
        -- As after a claim: in an ordered queue the message blocks its group until the retry; in other queues the group
        -- gets a new ticket.
        INSERT INTO mq.group_lock (id, type, group_key)
        SELECT id, type, coalesce(group_key, '') FROM mq.message WHERE id = p_id
        ON CONFLICT DO NOTHING;
    END IF;
    state := CASE WHEN mq_internal.fail_messages(v_queue, v_held.reader, ARRAY[p_id], ARRAY[v_held.attempt],
        ARRAY[p_retry_after_seconds], ARRAY[p_error]) IS NULL THEN 'N' ELSE 'E' END;
END
$$;

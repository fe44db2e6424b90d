-- count_attempt: count a take that was rolled back as a failed attempt: retry the message after a delay, or dead-letter it.
-- Arguments:   p_id (a ready message that no consumer holds), p_error (cut to 4,000 characters), p_retry_after_seconds (0 to
--              315,360,000; NULL: the queue's backoff), p_dead (1: dead-letter it now; NULL: 0)
-- Returns:     state: N (will be retried) or E (dead letter); NULL when the message is not ready, and nothing has changed
-- Errors:      50001 wrong_isolation (ordered queues), 50002 invalid_argument
-- Transaction: joins the caller's; skips a message that a claim is taking at this moment
-- Example:     SELECT mq.count_attempt(17, 'connection refused');
CREATE OR REPLACE FUNCTION mq.count_attempt(
    p_id bigint,
    p_error text DEFAULT NULL,
    p_retry_after_seconds bigint DEFAULT NULL,
    p_dead bigint DEFAULT NULL,
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
    PERFORM mq_internal.require_range('retry_after_seconds', p_retry_after_seconds, 0, 315360000);
    PERFORM mq_internal.require_range('dead', p_dead, 0, 1);
    IF p_dead = 1 AND p_retry_after_seconds IS NOT NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'dead: give either dead or retry_after_seconds');
    END IF;
    SELECT * INTO v_held FROM mq_internal.remove_ready(p_id);
    IF v_held.type IS NULL THEN
        RETURN;
    END IF;
    v_queue := mq_internal.policy(v_held.type);
    IF v_queue.grouped THEN
        -- As after a claim: in an ordered queue the message blocks its group until the retry; in other queues the group
        -- gets a new ticket.
        INSERT INTO mq.group_lock (id, type, group_key)
        SELECT id, type, coalesce(group_key, '') FROM mq.message WHERE id = p_id
        ON CONFLICT DO NOTHING;
    END IF;
    state := CASE WHEN mq_internal.fail_messages(v_queue, v_held.consumer, ARRAY[p_id], ARRAY[v_held.attempt],
        ARRAY[CASE WHEN p_dead = 1 THEN -1 ELSE p_retry_after_seconds END], ARRAY[p_error]) IS NULL THEN 'N' ELSE 'E' END;
END
$$;

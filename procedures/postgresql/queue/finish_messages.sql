-- finish_messages: finish a part of a batch: the messages that the list names. The others stay claimed.
-- Arguments:   p_batch_key, p_outcomes (a JSON object per line; only the id: the message is done; error: it failed;
--              retry_after_seconds: when to retry it, without it the queue's backoff; dead: 1 dead-letters it; released: 1
--              gives it back without counting the attempt)
-- Returns:     affected: messages that the batch no longer holds
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument,
--              50008 lease_lost
-- Transaction: joins the caller's; calls for the same batch wait for each other
-- Example:     SELECT mq.finish_messages('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', E'{"id":17}\n{"id":18,"released":1}');
CREATE OR REPLACE FUNCTION mq.finish_messages(p_batch_key uuid, p_outcomes text, OUT affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_batch mq.batch;
    v_queue mq.queue;
    v_of record;
BEGIN
    IF p_batch_key IS NULL OR p_outcomes IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', CASE WHEN p_batch_key IS NULL THEN 'batch_key' ELSE 'outcomes' END
            || ': must not be NULL');
    END IF;
    SELECT * INTO v_batch FROM mq.batch AS b WHERE b.batch_key = p_batch_key FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM mq_internal.raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    END IF;
    v_queue := mq_internal.policy(v_batch.type);
    v_of := mq_internal.match_outcomes(v_batch, p_outcomes, true);
    affected := cardinality(v_batch.ids) - coalesce(cardinality(v_of.left_ids), 0);
    IF v_of.left_ids IS NULL THEN
        DELETE FROM mq.batch AS b WHERE b.batch_key = p_batch_key;
    ELSIF affected > 0 THEN
        UPDATE mq.batch AS b SET ids = v_of.left_ids, attempts = v_of.left_attempts WHERE b.batch_key = p_batch_key;
    END IF;
    IF v_of.failed IS NOT NULL THEN
        PERFORM mq_internal.fail_messages(v_queue, v_batch.consumer, v_of.failed, v_of.failed_attempts, v_of.retries, v_of.errors);
    END IF;
    IF v_of.released IS NOT NULL THEN
        PERFORM mq_internal.put_back(v_queue, v_of.released, v_of.released_attempts);
    END IF;
    IF v_of.done IS NOT NULL THEN
        PERFORM mq_internal.complete_messages(v_queue, v_of.done, v_of.done_attempts, v_batch.consumer);
    END IF;
END
$$;

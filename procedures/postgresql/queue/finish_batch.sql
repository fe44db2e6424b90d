-- finish_batch: complete a batch except for its failures, and claim the next batch, in one transaction.
-- Arguments:   p_batch_key, p_outcomes (a JSON object per line; error: the message failed; retry_after_seconds: when to
--              retry it, without it the queue's backoff; dead: 1 dead-letters it; released: 1 gives it back), p_next_size (0
--              to 10,000; NULL or 0: claim nothing)
-- Returns:     the messages of the next batch, with the columns of claim_batch; no rows when p_next_size is 0 or nothing is
--              ready
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument,
--              50008 lease_lost
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.finish_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"id":17,"error":"busy"}', 100);
CREATE OR REPLACE FUNCTION mq.finish_batch(
    p_batch_key uuid,
    p_outcomes text DEFAULT NULL,
    p_next_size bigint DEFAULT NULL
) RETURNS TABLE (
    id bigint, type text, body text, headers text, priority integer, group_key text, dedup_key text, attempt integer,
    created_at timestamptz, source text, batch_key uuid, lease_until timestamptz, max_attempts integer,
    run_at timestamptz, extra text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
    v_batch mq.batch;
    v_run boolean;
    v_queue mq.queue;
    v_of record;
BEGIN
    IF p_batch_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'batch_key: must not be NULL');
    END IF;
    IF p_next_size NOT BETWEEN 0 AND 10000 THEN
        PERFORM mq_internal.require_range('next_size', p_next_size, 0, 10000);
    END IF;
    DELETE FROM mq.batch WHERE batch_key = p_batch_key RETURNING * INTO v_batch;
    IF NOT FOUND THEN
        PERFORM mq_internal.raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    END IF;
    v_queue := mq_internal.policy(v_batch.type);
    IF p_outcomes <> '' THEN
        v_of := mq_internal.match_outcomes(v_batch, p_outcomes, false);
        IF v_of.failed IS NOT NULL THEN
            PERFORM mq_internal.fail_messages(v_queue, v_batch.consumer, v_of.failed, v_of.failed_attempts, v_of.retries, v_of.errors);
        END IF;
        IF v_of.released IS NOT NULL THEN
            PERFORM mq_internal.put_back(v_queue, v_of.released, v_of.released_attempts);
        END IF;
        v_batch.ids := v_of.done;
        v_batch.attempts := v_of.done_attempts;
    END IF;
    IF v_batch.ids IS NOT NULL THEN
        PERFORM mq_internal.complete_messages(v_queue, v_batch.ids, v_batch.attempts, v_batch.consumer);
    END IF;
    IF coalesce(p_next_size, 0) = 0 THEN
        RETURN;
    END IF;
    v_batch := mq_internal.claim(v_queue, p_next_size, v_batch.consumer, v_batch.lease_seconds);
    IF v_batch.batch_key IS NOT NULL THEN
        v_run := cardinality(v_batch.ids) > 1 AND mq_internal.is_run(v_batch.ids);
        RETURN QUERY
            -- The rows keep the order of unnest: see claim_batch.
            SELECT m.id, m.type, m.body, m.headers, m.priority::integer, m.group_key, m.dedup_key,
                v_batch.attempts[u.n + m.id - u.first]::integer, m.created_at, m.source, v_batch.batch_key, v_batch.lease_until,
                coalesce(m.max_attempts, v_queue.max_attempts), m.run_at, NULL::text
            FROM unnest(
                CASE WHEN v_run THEN v_batch.ids[1:1] ELSE v_batch.ids END,
                CASE WHEN v_run THEN v_batch.ids[cardinality(v_batch.ids):] ELSE v_batch.ids END
            ) WITH ORDINALITY AS u (first, last, n)
            CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id BETWEEN u.first AND u.last ORDER BY id OFFSET 0) AS m;
    END IF;
END
$$;

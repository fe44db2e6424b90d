-- claim_batch: claim up to p_size ready messages of one type under one new batch key.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_consumer (NULL: the application name), p_lease_seconds (NULL: the
--              queue's)
-- Returns:     the messages in order of priority, run_at, id; no rows when nothing is ready, no limit allows it, or the
--              queue is paused
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits), 50002 invalid_argument
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.claim_batch('email', 10, 'worker-1', 60);
CREATE OR REPLACE FUNCTION mq.claim_batch(
    p_type text,
    p_size bigint DEFAULT NULL,
    p_consumer text DEFAULT NULL,
    p_lease_seconds bigint DEFAULT NULL
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
    v_queue mq.queue;
    v_batch mq.batch;
    v_run boolean;
BEGIN
    -- The detailed checks run only if this test fails: each call costs as much as an index search.
    IF (char_length(p_type) BETWEEN 1 AND 200 AND coalesce(p_size, 1) BETWEEN 1 AND 10000
            AND coalesce(char_length(p_consumer), 1) BETWEEN 1 AND 200
            AND coalesce(p_lease_seconds, 1) BETWEEN 1 AND 86400) IS NOT TRUE THEN
        PERFORM mq_internal.require_name('type', p_type, false);
        PERFORM mq_internal.require_range('size', p_size, 1, 10000);
        PERFORM mq_internal.require_name('consumer', p_consumer, true);
        PERFORM mq_internal.require_range('lease_seconds', p_lease_seconds, 1, 86400);
    END IF;
    v_queue := mq_internal.policy(p_type);
    v_batch := mq_internal.claim(v_queue, coalesce(p_size, 1), mq_internal.consumer_name(p_consumer), p_lease_seconds);
    IF v_batch.batch_key IS NOT NULL THEN
        v_run := cardinality(v_batch.ids) > 1 AND mq_internal.is_run(v_batch.ids);
        RETURN QUERY
            -- A nested loop from unnest keeps its order. OFFSET 0 keeps the subquery: one search by primary key per run.
            -- Without it, statistics of an empty queue lead to a scan of all messages.
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

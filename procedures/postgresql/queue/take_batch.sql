-- take_batch: receive and finish messages in one call: a commit removes them, a rollback makes them ready again.
-- Arguments:   p_type (1 to 200 characters), p_size (1 to 10,000; NULL: 1)
-- Returns:     the messages in order of priority, run_at, id; batch_key and lease_until are NULL; no rows when nothing is
--              ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits), 50002 invalid_argument
-- Transaction: joins the caller's, which does the work and commits; other claims skip the messages that it has taken
-- Example:     BEGIN; SELECT * FROM mq.take_batch('email', 10); INSERT INTO ...; COMMIT;
CREATE OR REPLACE FUNCTION mq.take_batch(p_type text, p_size bigint DEFAULT NULL) RETURNS TABLE (
    id bigint, type text, body text, headers text, priority integer, group_key text, dedup_key text, attempt integer,
    created_at timestamptz, source text, batch_key uuid, lease_until timestamptz, max_attempts integer,
    run_at timestamptz, extra text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off SET enable_material = off AS $$
#variable_conflict use_column
DECLARE
    v_queue mq.queue;
    v_size bigint := coalesce(p_size, 1);
    v_picked record;
    v_run boolean;
BEGIN
    IF (char_length(p_type) BETWEEN 1 AND 200 AND coalesce(p_size, 1) BETWEEN 1 AND 10000) IS NOT TRUE THEN
        PERFORM mq_internal.require_name('type', p_type, false);
        PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    END IF;
    v_queue := mq_internal.policy(p_type);
    IF v_queue.paused THEN
        RETURN;
    END IF;
    IF v_queue.max_active > 0 OR v_queue.rate > 0 THEN
        v_size := mq_internal.allowance(v_queue, v_size);
        IF v_size = 0 THEN
            RETURN;
        END IF;
        -- Wake consumers at the commit: until then no other claim of the type gets a message.
        PERFORM mq_internal.wake(p_type);
    END IF;
    v_picked := mq_internal.pick(v_queue, v_size, true);
    IF v_picked.picked IS NULL THEN
        RETURN;
    END IF;
    IF v_queue.rate > 0 THEN
        PERFORM mq_internal.spend(v_queue, cardinality(v_picked.picked));
    END IF;
    IF v_queue.on_complete = 'archive' THEN
        RETURN QUERY
            SELECT m.id, m.type, m.body, m.headers, m.priority::integer, m.group_key, m.dedup_key, u.attempt::integer,
                m.created_at, m.source, NULL::uuid, NULL::timestamptz, coalesce(m.max_attempts, v_queue.max_attempts), m.run_at,
                NULL::text
            FROM unnest(v_picked.picked, v_picked.attempts) WITH ORDINALITY AS u (id, attempt, n)
            CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m
            ORDER BY u.n;
        PERFORM mq_internal.complete_messages(v_queue, v_picked.picked, v_picked.attempts, mq_internal.consumer_name(NULL));
    ELSE
        v_run := cardinality(v_picked.picked) > 1 AND mq_internal.is_run(v_picked.picked);
        -- A handler of a claim may have saved steps before it failed.
        IF mq_internal.has_steps(v_picked.picked, v_run) THEN
            DELETE FROM mq.step WHERE id = ANY (v_picked.picked);
        END IF;
        RETURN QUERY
            -- A nested loop from unnest keeps its order.
            DELETE FROM mq.message AS m
            USING unnest(
                CASE WHEN v_run THEN v_picked.picked[1:1] ELSE v_picked.picked END,
                CASE WHEN v_run THEN v_picked.picked[cardinality(v_picked.picked):] ELSE v_picked.picked END
            ) WITH ORDINALITY AS u (first, last, n)
            WHERE m.id BETWEEN u.first AND u.last
            RETURNING m.id, m.type, m.body, m.headers, m.priority::integer, m.group_key, m.dedup_key,
                v_picked.attempts[u.n + m.id - u.first]::integer, m.created_at, m.source, NULL::uuid, NULL::timestamptz,
                coalesce(m.max_attempts, v_queue.max_attempts), m.run_at, NULL::text;
    END IF;
END
$$;

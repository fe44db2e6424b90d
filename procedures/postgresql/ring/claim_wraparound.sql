-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   p_type, p_size (1 to 10,000; NULL: 1), p_consumer (NULL: the application name), p_lease_seconds (NULL: the
--              queue's), p_after_id (NULL: the position where this consumer stopped)
-- Returns:     the messages after p_after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation (queues with limits), 50002 invalid_argument, 50003 wrong_kind (the queue is not a
--              ring)
-- Transaction: joins the caller's; never waits for another claim
-- Example:     SELECT * FROM mq.claim_wraparound('crawl', 10, 'worker-1');
CREATE OR REPLACE FUNCTION mq.claim_wraparound(
    p_type text,
    p_size bigint DEFAULT NULL,
    p_consumer text DEFAULT NULL,
    p_lease_seconds bigint DEFAULT NULL,
    p_after_id bigint DEFAULT NULL
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
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    PERFORM mq_internal.require_name('consumer', p_consumer, true);
    PERFORM mq_internal.require_range('lease_seconds', p_lease_seconds, 1, 86400);
    v_queue := mq_internal.policy(p_type);
    IF NOT v_queue.ring THEN
        PERFORM mq_internal.raise_error('wrong_kind', format('type: %s is not a ring; use set_option(%L, ''ring'', ''1''), or claim_batch',
            p_type, p_type));
    END IF;
    v_batch := mq_internal.claim(v_queue, coalesce(p_size, 1), mq_internal.consumer_name(p_consumer), p_lease_seconds, p_after_id);
    IF v_batch.batch_key IS NOT NULL THEN
        RETURN QUERY
            -- The rows keep the order of unnest: see claim_batch.
            SELECT m.id, m.type, m.body, m.headers, m.priority::integer, m.group_key, m.dedup_key, u.attempt::integer,
                m.created_at, m.source, v_batch.batch_key, v_batch.lease_until, coalesce(m.max_attempts, v_queue.max_attempts), m.run_at,
                NULL::text
            FROM unnest(v_batch.ids, v_batch.attempts) AS u (id, attempt)
            CROSS JOIN LATERAL (SELECT * FROM mq.message WHERE id = u.id OFFSET 0) AS m;
    END IF;
END
$$;

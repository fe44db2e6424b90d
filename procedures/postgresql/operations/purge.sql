-- purge: delete the messages of one type and state, at most 10,000 per call.
-- Arguments:   p_type (1 to 200 characters), p_state (N: ready and delayed; E: dead; C: archived)
-- Returns:     count: messages deleted; repeat until it is 0
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's; skips messages that a claim is taking at this moment
-- Example:     SELECT mq.purge('email', 'E');
CREATE OR REPLACE FUNCTION mq.purge(
    p_type text,
    p_state text,
    OUT count bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    c_size CONSTANT integer := 10000;
    v_queue mq.queue;
    v_ids bigint[];
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    IF p_state IS NULL OR p_state NOT IN ('N', 'E', 'C') THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'state: must be N, E or C');
    END IF;
    v_queue := mq_internal.policy(p_type);
    IF p_state = 'C' THEN
        count := mq_internal.erase_archived(p_type, 'infinity', c_size);
        RETURN;
    END IF;
    IF p_state = 'E' THEN
        v_ids := ARRAY(SELECT id FROM mq.dead WHERE type = p_type ORDER BY type, died_at, id LIMIT c_size
            FOR UPDATE SKIP LOCKED);
    ELSE
        IF v_queue.grouped THEN
            v_ids := ARRAY(SELECT id FROM mq.grouped WHERE type = p_type LIMIT c_size FOR UPDATE SKIP LOCKED);
        ELSE
            v_ids := ARRAY(SELECT id FROM mq.ready WHERE type = p_type ORDER BY type, priority, run_at, id LIMIT c_size
                FOR UPDATE SKIP LOCKED);
        END IF;
        v_ids := v_ids || ARRAY(SELECT id FROM mq.delayed WHERE type = p_type ORDER BY type, run_at, id
            LIMIT c_size - cardinality(v_ids) FOR UPDATE SKIP LOCKED);
    END IF;
    count := mq_internal.erase(v_queue, v_ids, p_state);
END
$$;

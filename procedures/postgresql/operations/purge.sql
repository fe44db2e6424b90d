-- purge: delete the messages of one queue and state, the oldest of dead and archived ones first.
-- Arguments:   p_type (1 to 200 characters), p_state (N: ready and delayed; E: dead; C: archived), p_before (only
--              those that died or were completed earlier, not with N; NULL: all), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected (messages deleted; repeat until it is 0), known (0: nothing has this name)
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's; skips messages that a claim is taking at this moment; a monthly partition of the archive
--              in which all messages are of this queue and older is emptied with TRUNCATE if it is not in use
-- Example:     SELECT * FROM mq.purge('email', 'C', now() - interval '90 days', 10000);
CREATE OR REPLACE FUNCTION mq.purge(
    p_type text,
    p_state text,
    p_before timestamptz DEFAULT NULL,
    p_size bigint DEFAULT NULL,
    OUT affected bigint,
    OUT known smallint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_size bigint := coalesce(p_size, 1000);
    v_queue mq.queue;
    v_ids bigint[];
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    IF p_state IS NULL OR p_state NOT IN ('N', 'E', 'C') THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'state: must be N, E or C');
    END IF;
    IF p_state = 'N' AND p_before IS NOT NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'before: must be NULL with state N');
    END IF;
    PERFORM mq_internal.require_range('size', p_size, 1, 10000);
    known := mq_internal.is_known(p_type)::integer;
    v_queue := mq_internal.policy(p_type);
    IF p_state = 'C' THEN
        affected := mq_internal.erase_archived(p_type, p_before, v_size);
        RETURN;
    END IF;
    IF p_state = 'E' THEN
        v_ids := ARRAY(SELECT id FROM mq.dead WHERE type = p_type AND died_at < coalesce(p_before, 'infinity')
            ORDER BY type, died_at, id LIMIT v_size FOR UPDATE SKIP LOCKED);
    ELSE
        IF v_queue.grouped THEN
            v_ids := ARRAY(SELECT id FROM mq.grouped WHERE type = p_type LIMIT v_size FOR UPDATE SKIP LOCKED);
        ELSE
            v_ids := ARRAY(SELECT id FROM mq.ready WHERE type = p_type ORDER BY type, priority, run_at, id LIMIT v_size
                FOR UPDATE SKIP LOCKED);
        END IF;
        v_ids := v_ids || ARRAY(SELECT id FROM mq.delayed WHERE type = p_type ORDER BY type, run_at, id
            LIMIT v_size - cardinality(v_ids) FOR UPDATE SKIP LOCKED);
    END IF;
    affected := mq_internal.erase(v_queue, v_ids, p_state);
END
$$;

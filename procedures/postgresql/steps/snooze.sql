-- snooze: put a claimed message back, due later: no attempt is counted, and its steps are kept; if it was
--     cancelled, delete it.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_seconds (0 to 315,360,000)
-- Returns:     affected: 1
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument,
--              50008 lease_lost (the batch key does not hold the message: roll back)
-- Transaction: joins the caller's; in an ordered queue the message's group waits, as for a retry
-- Example:     SELECT mq.snooze(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 3600);
CREATE OR REPLACE FUNCTION mq.snooze(
    p_id bigint,
    p_batch_key uuid,
    p_seconds bigint,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_held record;
BEGIN
    IF p_seconds IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'seconds: must not be NULL');
    END IF;
    PERFORM mq_internal.require_range('seconds', p_seconds, 0, 315360000);
    SELECT * INTO v_held FROM mq_internal.leave_batch(p_id, p_batch_key);
    -- As a failure that the message survives, because this attempt does not count.
    PERFORM mq_internal.fail_messages(mq_internal.policy(v_held.type), v_held.consumer, ARRAY[p_id],
        ARRAY[(v_held.attempt - 1)::smallint], ARRAY[p_seconds], ARRAY[NULL::text]);
    affected := 1;
END
$$;

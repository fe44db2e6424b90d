-- cancel: delete one new or dead message.
-- Arguments:   p_id (the message)
-- Returns:     count: 1; 0 when the message is active, is being claimed at this moment, or does not exist
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's; never waits for a claim
-- Example:     SELECT mq.cancel(17);
CREATE OR REPLACE FUNCTION mq.cancel(
    p_id bigint,
    OUT count bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_type text;
BEGIN
    IF p_id IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    SELECT m.type INTO v_type FROM mq.message AS m WHERE m.id = p_id;
    count := 0;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    count := mq_internal.erase(mq_internal.policy(v_type), ARRAY[p_id], 'NE');
END
$$;

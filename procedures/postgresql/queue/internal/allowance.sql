-- allowance: how many messages the limits of a type let a claim have now; from here to the caller's commit no other claim of
--            the type gets any.
-- Arguments:   p_queue (the policy, with max_active or rate), p_size (what the claim wants)
-- Returns:     0 to p_size; 0 too while another claim is at it
-- Errors:      50001 wrong_isolation
-- Transaction: must be READ COMMITTED; never waits for another claim
-- Example:     SELECT mq.allowance(mq.policy('email'), 10);
--
-- A batch counts as long as it exists, also after its lease: its owner may still extend it. When there is no room, expired
-- batches are rescued first.

CREATE OR REPLACE FUNCTION mq.allowance(
    p_queue mq.queue,
    p_size bigint
) RETURNS integer
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
    -- As many as a claim rescues on its way.
    c_rescue CONSTANT integer := 20;
    v_size integer := p_size;
    v_now timestamptz;
    v_full_at timestamptz;
    v_active bigint;
BEGIN
    PERFORM mq.require_read_committed();
    SELECT full_at INTO v_full_at FROM mq.limited WHERE type = p_queue.type FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    IF p_queue.rate > 0 THEN
        v_now := clock_timestamp();
        v_size := least(v_size, mq.tokens(v_full_at, v_now, p_queue.rate, p_queue.rate_seconds));
        IF v_full_at > v_now + make_interval(secs => p_queue.rate_seconds) THEN
            -- The clock was set back, or the period has become shorter: it is empty, and gains from now on.
            UPDATE mq.limited SET full_at = v_now + make_interval(secs => p_queue.rate_seconds) WHERE type = p_queue.type;
        END IF;
    END IF;
    IF v_size = 0 OR p_queue.max_active = 0 THEN
        RETURN v_size;
    END IF;
    LOOP
        SELECT coalesce(sum(cardinality(ids)), 0) INTO v_active FROM mq.batch WHERE type = p_queue.type;
        EXIT WHEN v_active < p_queue.max_active OR mq.rescue(p_queue, c_rescue) = 0;
    END LOOP;
    RETURN least(v_size, greatest(p_queue.max_active - v_active, 0));
END
$$;

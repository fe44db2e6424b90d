-- allowance: how many messages the limits of a type allow a claim to take now; other claims of the type get none until
--     this transaction ends.
-- Returns: 0 to p_size; also 0 while another claim of the type is in progress
-- Transaction: must be READ COMMITTED; never waits for another claim
--
-- A batch counts as active until it is finished, even after its lease has expired: its consumer may still extend it. When
-- no place is free, the call first rescues expired batches.
CREATE OR REPLACE FUNCTION mq_internal.allowance(p_queue mq.queue, p_size bigint) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    -- The number of expired claims that pick rescues too.
    c_rescue CONSTANT integer := 20;
    v_size integer := p_size;
    v_now timestamptz;
    v_full_at timestamptz;
    v_active bigint;
BEGIN
    PERFORM mq_internal.require_read_committed();
    SELECT full_at INTO v_full_at FROM mq.limited WHERE type = p_queue.type FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    IF p_queue.rate > 0 THEN
        v_now := clock_timestamp();
        v_size := least(v_size, mq_internal.tokens(v_full_at, v_now, p_queue.rate, p_queue.rate_seconds));
        IF v_full_at > v_now + make_interval(secs => p_queue.rate_seconds) THEN
            -- The clock was set back, or the period is shorter now: the bucket is empty and starts to fill now.
            UPDATE mq.limited SET full_at = v_now + make_interval(secs => p_queue.rate_seconds) WHERE type = p_queue.type;
        END IF;
    END IF;
    IF v_size = 0 OR p_queue.max_active = 0 THEN
        RETURN v_size;
    END IF;
    LOOP
        SELECT coalesce(sum(cardinality(ids)), 0) INTO v_active FROM mq.batch WHERE type = p_queue.type;
        EXIT WHEN v_active < p_queue.max_active OR mq_internal.rescue(p_queue, c_rescue) = 0;
    END LOOP;
    RETURN least(v_size, greatest(p_queue.max_active - v_active, 0));
END
$$;

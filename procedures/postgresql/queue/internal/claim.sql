-- claim: claim messages of a type, unless it is paused.
-- Returns: the new row of mq.batch, with ids in order of priority, run_at, id; NULL when nothing is ready, no limit
--     allows it, or the queue is paused
CREATE OR REPLACE FUNCTION mq_internal.claim(
    p_queue mq.queue, p_size bigint, p_consumer text, p_lease_seconds bigint
) RETURNS mq.batch
LANGUAGE plpgsql AS $$
DECLARE
    v_size integer := p_size;
    v_picked record;
BEGIN
    IF p_queue.paused THEN
        RETURN NULL;
    END IF;
    IF p_queue.max_active > 0 OR p_queue.rate > 0 THEN
        v_size := mq_internal.allowance(p_queue, p_size);
        IF v_size = 0 THEN
            RETURN NULL;
        END IF;
    END IF;
    v_picked := mq_internal.pick(p_queue, v_size, false);
    IF v_picked.picked IS NULL THEN
        RETURN NULL;
    END IF;
    IF p_queue.rate > 0 THEN
        PERFORM mq_internal.spend(p_queue, cardinality(v_picked.picked));
    END IF;
    RETURN mq_internal.hold(p_queue, v_picked.picked, v_picked.attempts, p_consumer, p_lease_seconds);
END
$$;

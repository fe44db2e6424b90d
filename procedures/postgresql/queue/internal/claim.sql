-- claim: claim messages of a type, unless it is paused.
-- Arguments: p_after_id (of a ring; NULL: the position where this consumer stopped)
-- Returns: the new row of mq.batch; NULL when nothing is ready, no limit allows it, or the queue is paused
CREATE OR REPLACE FUNCTION mq_internal.claim(
    p_queue mq.queue, p_size bigint, p_consumer text, p_lease_seconds bigint, p_after_id bigint DEFAULT NULL
) RETURNS mq.batch
LANGUAGE plpgsql AS $$
DECLARE
    v_size integer := p_size;
    v_seconds integer := coalesce(p_lease_seconds, p_queue.lease_seconds);
    v_picked record;
    v_now timestamptz;
    v_batch mq.batch;
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
    IF p_queue.ring THEN
        SELECT t.ids AS picked, t.attempts INTO v_picked FROM mq_internal.claim_ring(p_queue, v_size, p_consumer, p_after_id) AS t;
    ELSE
        v_picked := mq_internal.pick(p_queue, v_size, false);
    END IF;
    IF v_picked.picked IS NULL THEN
        RETURN NULL;
    END IF;
    IF p_queue.rate > 0 THEN
        PERFORM mq_internal.spend(p_queue, cardinality(v_picked.picked));
    END IF;
    v_now := clock_timestamp();
    INSERT INTO mq.batch (claimed_at, lease_until, lease_seconds, type, consumer, ids, attempts)
    VALUES (v_now, v_now + make_interval(secs => v_seconds), v_seconds, p_queue.type, p_consumer, v_picked.picked, v_picked.attempts)
    RETURNING * INTO v_batch;
    RETURN v_batch;
END
$$;

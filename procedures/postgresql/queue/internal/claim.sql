-- claim: claim messages of a type that is not paused, and return them.
-- Arguments:   p_queue (the policy), p_size, p_reader, p_lease_seconds (NULL: the policy's)
-- Returns:     the messages in order of priority, run_at, id; no rows when nothing is ready, no limit allows it or the queue is paused
-- Errors:      50001 wrong_isolation (ordered queues and those with limits)
-- Transaction: joins the caller's
-- Example:     SELECT * FROM mq.claim(mq.policy('email'), 10, 'worker-1', 60);

CREATE OR REPLACE FUNCTION mq.claim(
    p_queue mq.queue,
    p_size bigint,
    p_reader text,
    p_lease_seconds bigint
) RETURNS TABLE (
    id bigint,
    type text,
    body text,
    headers text,
    priority integer,
    group_key text,
    dedup_key text,
    attempt integer,
    created_at timestamptz,
    source text,
    batch_key uuid,
    lease_until timestamptz
)
LANGUAGE plpgsql
AS $$
DECLARE
    v_size integer := p_size;
    v_picked record;
BEGIN
    IF p_queue.paused THEN
        RETURN;
    END IF;
    IF p_queue.max_active > 0 OR p_queue.rate > 0 THEN
        v_size := mq.allowance(p_queue, p_size);
        IF v_size = 0 THEN
            RETURN;
        END IF;
    END IF;
    v_picked := mq.pick(p_queue, v_size, false);
    IF v_picked.picked IS NOT NULL THEN
        IF p_queue.rate > 0 THEN
            PERFORM mq.spend(p_queue, cardinality(v_picked.picked));
        END IF;
        RETURN QUERY SELECT * FROM mq.hold(p_queue, v_picked.picked, v_picked.attempts, p_reader, p_lease_seconds);
    END IF;
END
$$;

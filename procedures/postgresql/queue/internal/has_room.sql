-- has_room: whether the limits of a type allow a claim to take a message now.
-- Returns: room: true or false; next_at: the latest time at which a limit allows the next message, as far as known
--     (next token or end of a lease); NULL when one is allowed now
CREATE OR REPLACE FUNCTION mq_internal.has_room(p_queue mq.queue, OUT room boolean, OUT next_at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_batch record;
BEGIN
    IF p_queue.rate > 0 THEN
        SELECT mq_internal.full_after(full_at, v_now, 1, p_queue.rate, p_queue.rate_seconds)
            - make_interval(secs => p_queue.rate_seconds) INTO next_at
        FROM mq.limited
        -- A bucket whose full_at is more than one period ahead does not count as empty here: the next claim corrects it.
        -- See tokens.
        WHERE type = p_queue.type AND full_at <= v_now + make_interval(secs => p_queue.rate_seconds);
    END IF;
    IF p_queue.max_active > 0 THEN
        SELECT sum(cardinality(ids)) AS active, min(lease_until) AS lease_until INTO v_batch
        FROM mq.batch WHERE type = p_queue.type;
        IF v_batch.active >= p_queue.max_active THEN
            next_at := greatest(next_at, v_batch.lease_until);
        END IF;
    END IF;
    room := next_at IS NULL OR next_at <= v_now;
    IF room THEN
        next_at := NULL;
    END IF;
END
$$;

-- readiness: whether a message of a type can be claimed now.
-- Arguments: p_all (false: next_run_at and reason only if ready is 1)
-- Returns: as wait_for_message
CREATE OR REPLACE FUNCTION mq_internal.readiness(
    p_type text, p_all boolean, OUT ready smallint, OUT next_run_at timestamptz, OUT reason text
)
LANGUAGE plpgsql AS $$
DECLARE
    -- A variable: a comparison with a volatile function cannot use an index.
    v_now timestamptz := clock_timestamp();
    v_scan_at timestamptz;
    v_due_at timestamptz;
    v_queue mq.queue := mq_internal.policy(p_type);
    -- The latest time at which a limit allows the next message, as far as known (next token or end of a lease).
    v_room_at timestamptz;
    v_limited boolean;
    v_batch record;
BEGIN
    IF v_queue.rate > 0 THEN
        SELECT mq_internal.full_after(full_at, v_now, 1, v_queue.rate, v_queue.rate_seconds)
            - make_interval(secs => v_queue.rate_seconds) INTO v_room_at
        FROM mq.limited
        -- A bucket whose full_at is more than one period ahead does not count as empty here: the next claim corrects it.
        -- See tokens.
        WHERE type = p_type AND full_at <= v_now + make_interval(secs => v_queue.rate_seconds);
    END IF;
    IF v_queue.max_active > 0 THEN
        SELECT sum(cardinality(ids)) AS active, min(lease_until) AS lease_until INTO v_batch
        FROM mq.batch WHERE type = p_type;
        IF v_batch.active >= v_queue.max_active THEN
            v_room_at := greatest(v_room_at, v_batch.lease_until);
        END IF;
    END IF;
    v_limited := coalesce(v_room_at > v_now, false);
    -- A claim rescues expired claims and sends due schedules only in a full scan: see pick and claim_ring. They are
    -- not ready before the next one.
    SELECT coalesce(max(t.scan_at), '-infinity') INTO v_scan_at
    FROM (
        SELECT scanned_at + interval '1 second' AS scan_at
        FROM mq.mark WHERE type = p_type ORDER BY type, n DESC, priority, run_at LIMIT 1
    ) AS t
    WHERE t.scan_at BETWEEN v_now AND v_now + interval '6 seconds';
    v_due_at := mq_internal.next_due(p_type);
    ready := CASE WHEN NOT v_queue.paused AND NOT v_limited AND (
        EXISTS (SELECT FROM mq.ready AS r WHERE r.type = p_type)
        OR EXISTS (SELECT FROM mq.delayed AS d WHERE d.type = p_type AND d.run_at <= v_now)
        OR v_scan_at <= v_now AND (
            EXISTS (SELECT FROM mq.batch AS b WHERE b.type = p_type AND b.lease_until <= v_now)
            OR v_due_at <= v_now
        )
    ) THEN 1 ELSE 0 END;
    IF ready = 0 AND NOT p_all THEN
        RETURN;
    END IF;
    SELECT least(
        (SELECT d.run_at FROM mq.delayed AS d WHERE d.type = p_type ORDER BY d.type, d.run_at LIMIT 1),
        (SELECT greatest(b.lease_until, v_scan_at) FROM mq.batch AS b WHERE b.type = p_type ORDER BY b.type, b.lease_until LIMIT 1),
        CASE WHEN v_due_at IS NOT NULL THEN greatest(v_due_at, v_scan_at) END
    ) INTO next_run_at;
    IF v_limited AND (next_run_at < v_room_at OR EXISTS (SELECT FROM mq.ready AS r WHERE r.type = p_type)) THEN
        next_run_at := v_room_at;
    END IF;
    reason := CASE
        WHEN ready = 1 THEN 'ready'
        WHEN v_queue.paused THEN 'paused'
        WHEN v_limited AND (
            EXISTS (SELECT FROM mq.ready AS r WHERE r.type = p_type)
            OR EXISTS (SELECT FROM mq.delayed AS d WHERE d.type = p_type AND d.run_at <= v_now)
        ) THEN 'limited'
        WHEN v_queue.grouped AND EXISTS (SELECT FROM mq.grouped AS g WHERE g.type = p_type)
            THEN CASE WHEN v_queue.ordered THEN 'blocked' ELSE 'limited' END
        WHEN v_due_at IS NOT NULL OR EXISTS (SELECT FROM mq.delayed AS d WHERE d.type = p_type) THEN 'delayed'
        WHEN mq_internal.is_known(p_type) THEN 'empty'
        ELSE 'unknown'
    END;
END
$$;

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
    v_queue mq.queue;
    v_room record;
BEGIN
    v_queue := mq_internal.policy(p_type);
    SELECT true AS room, NULL::timestamptz AS next_at INTO v_room;
    IF v_queue.max_active > 0 OR v_queue.rate > 0 THEN
        v_room := mq_internal.has_room(v_queue);
    END IF;
    -- A claim rescues expired claims and sends due schedules only in a full scan: see pick and claim_ring. They are
    -- not ready before the next one.
    SELECT coalesce(max(t.scan_at), '-infinity') INTO v_scan_at
    FROM (
        SELECT scanned_at + interval '1 second' AS scan_at
        FROM mq.mark WHERE type = p_type ORDER BY type, n DESC, priority, run_at LIMIT 1
    ) AS t
    WHERE t.scan_at BETWEEN v_now AND v_now + interval '1 second';
    v_due_at := mq_internal.next_due(p_type);
    ready := CASE WHEN NOT v_queue.paused AND v_room.room AND (
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
    IF NOT v_room.room AND (next_run_at < v_room.next_at OR EXISTS (SELECT FROM mq.ready AS r WHERE r.type = p_type)) THEN
        next_run_at := v_room.next_at;
    END IF;
    reason := 'ready';
    IF ready = 0 THEN
        reason := CASE
            WHEN v_queue.paused THEN 'paused'
            WHEN NOT v_room.room AND (
                EXISTS (SELECT FROM mq.ready AS r WHERE r.type = p_type)
                OR EXISTS (SELECT FROM mq.delayed AS d WHERE d.type = p_type AND d.run_at <= v_now)
            ) THEN 'limited'
            WHEN v_queue.grouped AND EXISTS (SELECT FROM mq.grouped AS g WHERE g.type = p_type)
                THEN CASE WHEN v_queue.ordered THEN 'blocked' ELSE 'limited' END
            WHEN v_due_at IS NOT NULL OR EXISTS (SELECT FROM mq.delayed AS d WHERE d.type = p_type) THEN 'delayed'
            WHEN mq_internal.is_known(p_type) THEN 'empty'
            ELSE 'unknown'
        END;
    END IF;
END
$$;

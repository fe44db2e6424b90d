-- wait_for_message: wait until a message is ready or the time is up; without waiting, ask senders to notify listeners of
--                   the type for the next 15 seconds.
-- Arguments:   p_type (1 to 200 characters), p_seconds (0 to 3,600; NULL or 0: do not wait)
-- Returns:     ready (1: a message can be claimed; else 0), next_run_at (when the next delayed message or schedule is due,
--              the next lease expires, or a limit allows the next message; NULL: nothing is expected), reason (ready, empty,
--              delayed, paused, limited, blocked or unknown)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waiting needs READ COMMITTED, because a snapshot does not see messages sent later
-- Example:     SELECT * FROM mq.wait_for_message('email', 30);
CREATE OR REPLACE FUNCTION mq.wait_for_message(
    p_type text,
    p_seconds bigint DEFAULT NULL,
    OUT ready smallint,
    OUT next_run_at timestamptz,
    OUT reason text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    c_pause CONSTANT double precision := 0.05;
    -- A variable: a comparison with a volatile function cannot use an index.
    v_now timestamptz;
    v_scan_at timestamptz;
    v_due_at timestamptz;
    v_queue mq.queue;
    v_room record;
    v_left double precision := coalesce(p_seconds, 0);
    v_pause double precision := 0.005;
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_range('seconds', p_seconds, 0, 3600);
    -- One waiter writes this about every 8 seconds; the others do not wait for it. A call that waits in here would commit
    -- the row too late.
    IF coalesce(p_seconds, 0) = 0 AND NOT EXISTS (
        SELECT FROM mq.waiter AS w WHERE w.type = p_type AND w.wait_until > clock_timestamp() + interval '7 seconds'
    ) THEN
        PERFORM mq_internal.ask_to_be_woken(p_type);
    END IF;
    LOOP
        v_now := clock_timestamp();
        v_queue := mq_internal.policy(p_type);
        SELECT true AS room, NULL::timestamptz AS next_at INTO v_room;
        IF v_queue.max_active > 0 OR v_queue.rate > 0 THEN
            v_room := mq_internal.has_room(v_queue);
        END IF;
        -- A claim rescues expired claims and sends due schedules only in a full scan: see pick and claim_wraparound. They are
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
        EXIT WHEN ready = 1 OR v_left <= 0;
        v_pause := least(v_pause, v_left);
        PERFORM pg_sleep(v_pause);
        -- Subtract the elapsed time, but at least the pause and at most a second more: the clock may have been set.
        v_left := v_left - least(greatest(extract(epoch FROM clock_timestamp() - v_now), v_pause), v_pause + 1);
        v_pause := least(2 * v_pause, c_pause);
    END LOOP;
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

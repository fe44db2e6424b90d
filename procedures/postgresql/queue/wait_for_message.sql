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
    v_asked_at timestamptz;
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
        v_asked_at := clock_timestamp();
        SELECT r.ready, r.next_run_at, r.reason INTO ready, next_run_at, reason
        FROM mq_internal.readiness(p_type, v_left <= 0) AS r;
        EXIT WHEN ready = 1 OR v_left <= 0;
        v_pause := least(v_pause, v_left);
        PERFORM pg_sleep(v_pause);
        -- Subtract the elapsed time, but at least the pause and at most a second more: the clock may have been set.
        v_left := v_left - least(greatest(extract(epoch FROM clock_timestamp() - v_asked_at), v_pause), v_pause + 1);
        v_pause := least(2 * v_pause, c_pause);
    END LOOP;
END
$$;

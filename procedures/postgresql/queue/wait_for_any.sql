-- wait_for_any: wait until a message of one of several types is ready or the time is up; without waiting, ask senders to
--               notify listeners of these types for the next 15 seconds.
-- Arguments:   p_types (1 to 1,000 types, one per line; see claim_any), p_seconds (0 to 3,600; NULL or 0: do not wait)
-- Returns:     type (the first one in the list that is ready; otherwise the one with the earliest next_run_at, paused queues
--              aside; NULL: nothing is expected), ready, next_run_at and reason (of that type, as from wait_for_message; if
--              type is NULL, reason is that of the first type in the list)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waiting needs READ COMMITTED, because a snapshot does not see messages sent later
-- Example:     SELECT * FROM mq.wait_for_any(E'email\nsms', 30);
CREATE OR REPLACE FUNCTION mq.wait_for_any(
    p_types text,
    p_seconds bigint DEFAULT NULL,
    OUT type text,
    OUT ready smallint,
    OUT next_run_at timestamptz,
    OUT reason text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    c_pause CONSTANT double precision := 0.05;
    v_types text[] := mq_internal.read_types(p_types);
    v_type text;
    v_queue mq.queue;
    v_look record;
    v_row record;
    v_next_at timestamptz;
    v_next_type text;
    v_asked_at timestamptz;
    v_spent double precision;
    v_left double precision := coalesce(p_seconds, 0);
    v_pause double precision := 0.005;
BEGIN
    PERFORM mq_internal.require_range('seconds', p_seconds, 0, 3600);
    -- As in wait_for_message.
    IF coalesce(p_seconds, 0) = 0 THEN
        PERFORM mq_internal.ask_to_be_woken(t.type) FROM unnest(v_types) AS t (type)
        WHERE NOT EXISTS (
            SELECT FROM mq.waiter AS w WHERE w.type = t.type AND w.wait_until > clock_timestamp() + interval '7 seconds'
        );
    END IF;
    LOOP
        v_asked_at := clock_timestamp();
        FOREACH v_type IN ARRAY v_types LOOP
            v_look := mq_internal.glance(v_type);
            CONTINUE WHEN NOT v_look.busy AND (v_left > 0 OR v_look.next_at IS NULL);
            v_queue := mq_internal.policy(v_type);
            CONTINUE WHEN v_queue.paused;
            -- A limit may allow the next message later than it is due.
            IF v_look.busy OR v_queue.max_active > 0 OR v_queue.rate > 0 THEN
                v_row := mq_internal.readiness(v_type, v_left <= 0);
                IF v_row.ready = 1 THEN
                    type := v_type;
                    ready := 1;
                    next_run_at := v_row.next_run_at;
                    reason := v_row.reason;
                    RETURN;
                END IF;
                v_look.next_at := v_row.next_run_at;
            END IF;
            IF v_look.next_at < v_next_at OR v_next_at IS NULL AND v_look.next_at IS NOT NULL THEN
                v_next_at := v_look.next_at;
                v_next_type := v_type;
            END IF;
        END LOOP;
        EXIT WHEN v_left <= 0;
        v_spent := extract(epoch FROM clock_timestamp() - v_asked_at);
        v_pause := least(v_pause, v_left);
        PERFORM pg_sleep(v_pause);
        -- Subtract the elapsed time: see wait_for_message.
        v_left := v_left - least(greatest(extract(epoch FROM clock_timestamp() - v_asked_at), v_pause), v_pause + 1);
        -- Most of the time is spent asleep, however long the list is.
        v_pause := least(2 * v_pause, greatest(c_pause, 4 * v_spent));
    END LOOP;
    v_row := mq_internal.readiness(coalesce(v_next_type, v_types[1]), true);
    -- The first type may have become ready since.
    type := coalesce(v_next_type, CASE v_row.ready WHEN 1 THEN v_types[1] END);
    ready := v_row.ready;
    next_run_at := CASE WHEN type IS NOT NULL THEN v_row.next_run_at END;
    reason := v_row.reason;
END
$$;

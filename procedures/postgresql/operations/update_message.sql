-- update_message: change a message that is new: ready, delayed, or waiting for its retry.
-- Arguments:   p_id (the message), p_options (a flat JSON object with one or more of: body (up to 16 MiB), run_at (a time with
--              its zone, from 1970 to ten years ahead; null: now), delay_seconds (0 to 315,360,000, instead of run_at; null:
--              now), priority (-32,768 to 32,767; null: 0), max_attempts (1 to 1,000; null: the queue's), headers (a text of
--              up to 64 KiB; null: none))
-- Returns:     affected (1; 0 when it was not changed), state (N if it was changed; otherwise A: active, E: dead, C:
--              archived, N: another transaction is claiming or changing it; NULL: there is no such message)
-- Errors:      50001 wrong_isolation (ordered queues and queues with limits per group), 50002 invalid_argument
-- Transaction: joins the caller's; never waits for a claim
-- Example:     SELECT * FROM mq.update_message(17, '{"run_at": null, "priority": -1}');
--
-- The row at the message's position is replaced even if the position stays: a claim with an older snapshot then fails, and
-- does not return the old body.
CREATE OR REPLACE FUNCTION mq.update_message(p_id bigint, p_options text, OUT affected bigint, OUT state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET enable_sort = off SET jit = off AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_set jsonb;
    v_moved boolean;
    v_run_at timestamptz;
    v_queue mq.queue;
    v_message mq.message;
    v_place record;
BEGIN
    IF p_id IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    v_set := mq_internal.read_options(p_options, 'options', '{"body": "text", "run_at": "time",
        "delay_seconds": [0, 315360000], "priority": [-32768, 32767], "max_attempts": [1, 1000], "headers": "text"}');
    IF v_set = '{}' THEN
        PERFORM mq_internal.raise_error('invalid_argument',
            'options: give at least one of body, run_at, delay_seconds, priority, max_attempts, headers');
    END IF;
    v_run_at := v_set ->> 'run_at';
    PERFORM mq_internal.require_message(CASE WHEN v_set ? 'body' THEN v_set ->> 'body' ELSE '' END, v_run_at, NULL, NULL,
        NULL, NULL, v_set ->> 'headers', NULL, (v_set ->> 'delay_seconds')::bigint, NULL);
    v_moved := v_set ?| '{run_at,delay_seconds}';
    v_run_at := coalesce(v_run_at, v_now + make_interval(secs => (v_set ->> 'delay_seconds')::bigint), v_now);

    affected := 0;
    SELECT * INTO v_message FROM mq.message AS m WHERE m.id = p_id;
    IF FOUND THEN
        v_queue := mq_internal.policy(v_message.type);
        IF v_queue.grouped THEN
            PERFORM mq_internal.require_read_committed();
        END IF;
        -- The lock keeps out other changes. A message that a consumer holds is not locked: see change_message.
        SELECT * INTO v_message FROM mq.message AS m
        WHERE m.id = p_id AND mq_internal.state_of(m.id) = 'N'
        FOR NO KEY UPDATE SKIP LOCKED;
        v_place := mq_internal.leave_place(v_queue, v_message.id, coalesce(v_message.group_key, ''), 'infinity',
            v_message.run_at);
        affected := (v_place.attempts IS NOT NULL)::integer;
    END IF;
    IF affected = 0 THEN
        state := mq_internal.state_of(p_id);
        RETURN;
    END IF;

    IF v_set ? 'priority' THEN
        v_message.priority := coalesce((v_set ->> 'priority')::smallint, 0);
    END IF;
    UPDATE mq.message AS m
    SET run_at = CASE WHEN v_moved THEN v_run_at ELSE m.run_at END,
        priority = v_message.priority,
        max_attempts = CASE WHEN v_set ? 'max_attempts' THEN (v_set ->> 'max_attempts')::smallint
            ELSE m.max_attempts END,
        body = CASE WHEN v_set ? 'body' THEN v_set ->> 'body' ELSE m.body END,
        headers = CASE WHEN v_set ? 'headers' THEN v_set ->> 'headers' ELSE m.headers END
    WHERE m.id = p_id;
    PERFORM mq_internal.enter_place(v_queue, p_id, v_now,
        CASE WHEN v_moved THEN v_run_at ELSE coalesce(v_place.due_at, v_message.run_at) END, v_message.priority,
        coalesce(v_message.group_key, ''), v_place.attempts, v_place.error, v_moved);
    state := 'N';
END
$$;

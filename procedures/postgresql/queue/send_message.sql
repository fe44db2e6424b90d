-- send_message: send one message with all options.
-- Arguments:   p_type, p_body (up to 16 MiB; text, or jsonb), p_run_at (1970 to ten years ahead; NULL: now), p_priority
--              (-32,768 to 32,767, smaller first; NULL: 0), p_group_key, p_dedup_key, p_max_attempts (1 to 1,000; NULL: the
--              queue's), p_headers (up to 64 KiB), p_source (NULL: the application name), p_delay_seconds (0 to 315,360,000,
--              instead of p_run_at), p_on_conflict (keep, replace or postpone a live message that has the same dedup_key;
--              NULL: keep); names and keys have 1 to 200 characters
-- Returns:     id; created (1: new; 0: id is the live message that has this type and dedup_key); changed (1: that message
--              was replaced or postponed); state (of the message: N; A or E only if created is 0)
-- Errors:      50001 wrong_isolation (replace or postpone in an ordered queue or one with limits per group),
--              50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed a message with the same dedup_key
-- Example:     SELECT * FROM mq.send_message('email', '{}', p_dedup_key => 'a-1', p_delay_seconds => 60);
CREATE OR REPLACE FUNCTION mq.send_message(
    p_type text, p_body text, p_run_at timestamptz DEFAULT NULL, p_priority bigint DEFAULT NULL,
    p_group_key text DEFAULT NULL, p_dedup_key text DEFAULT NULL, p_max_attempts bigint DEFAULT NULL,
    p_headers text DEFAULT NULL, p_source text DEFAULT NULL, p_delay_seconds bigint DEFAULT NULL,
    p_on_conflict text DEFAULT NULL, OUT id bigint, OUT created smallint, OUT changed smallint, OUT state text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_run_at timestamptz;
    v_priority smallint;
    v_queue mq.queue;
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    PERFORM mq_internal.require_message(p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers, p_source,
        p_delay_seconds, p_on_conflict);
    v_run_at := coalesce(p_run_at, v_now + make_interval(secs => p_delay_seconds), v_now);
    v_priority := coalesce(p_priority, 0);
    created := 1;
    changed := 0;
    state := 'N';
    LOOP
        INSERT INTO mq.message AS m (run_at, created_at, priority, max_attempts, type, body, headers, group_key,
            dedup_key, source)
        VALUES (v_run_at, v_now, v_priority, p_max_attempts, p_type, p_body, p_headers, p_group_key, p_dedup_key,
            mq_internal.consumer_name(p_source))
        ON CONFLICT (type, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING
        RETURNING m.id INTO id;
        EXIT WHEN FOUND;
        SELECT m.id, mq_internal.state_of(m.id) INTO id, state
        FROM mq.message AS m WHERE m.type = p_type AND m.dedup_key = p_dedup_key;
        IF FOUND AND p_on_conflict <> 'keep' THEN
            changed := mq_internal.change_message(mq_internal.policy(p_type), id, p_on_conflict, v_now, v_run_at, v_priority, p_body, p_headers);
            PERFORM FROM mq.message AS m WHERE m.id = send_message.id;
        END IF;
        IF FOUND THEN
            created := 0;
            state := CASE changed WHEN 1 THEN 'N' ELSE state END;
            RETURN;
        END IF;
        -- The live message was finished between the two statements: try to send again.
        state := 'N';
    END LOOP;

    -- Read this only after the transaction has its ID: see convert_rows.
    v_queue := mq_internal.policy(p_type);
    IF v_run_at > v_now THEN
        INSERT INTO mq.delayed (id, run_at, priority, attempts, type) VALUES (send_message.id, v_run_at, v_priority, 0, p_type);
    ELSE
        IF v_queue.grouped THEN
            INSERT INTO mq.grouped (id, attempts, type, group_key)
            VALUES (send_message.id, 0, p_type, coalesce(p_group_key, ''));
        END IF;
        INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
        VALUES (v_run_at, send_message.id, v_priority, 0, p_type,
            CASE WHEN v_queue.grouped OR v_queue.ring OR v_queue.fair
                OR current_setting('transaction_isolation') <> 'read committed' THEN v_queue.grouped END,
            mq_internal.lane(v_queue.fair OR v_queue.grouped, v_priority, p_group_key));
        IF v_run_at < v_now THEN
            PERFORM mq_internal.lower_mark(p_type);
        END IF;
    END IF;
    PERFORM mq_internal.wake(p_type);
END
$$;

-- A text without a type goes to the function above.
CREATE OR REPLACE FUNCTION mq.send_message(
    p_type text, p_body jsonb, p_run_at timestamptz DEFAULT NULL, p_priority bigint DEFAULT NULL,
    p_group_key text DEFAULT NULL, p_dedup_key text DEFAULT NULL, p_max_attempts bigint DEFAULT NULL,
    p_headers text DEFAULT NULL, p_source text DEFAULT NULL, p_delay_seconds bigint DEFAULT NULL,
    p_on_conflict text DEFAULT NULL, OUT id bigint, OUT created smallint, OUT changed smallint, OUT state text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_sent record := mq.send_message(p_type, p_body::text, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts,
        p_headers, p_source, p_delay_seconds, p_on_conflict);
BEGIN
    id := v_sent.id;
    created := v_sent.created;
    changed := v_sent.changed;
    state := v_sent.state;
END
$$;

-- send_one: send one message whose options are checked.
-- Arguments:   those of send_message
-- Returns:     id, created and changed, as send_message does
-- Errors:      50001 wrong_isolation (a change in an ordered queue)
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed the same dedup_key
-- Example:     SELECT * FROM mq.send_one('email', '{}', NULL, 0, NULL, 'a-1', NULL, NULL, NULL, 60, 'replace');

CREATE OR REPLACE FUNCTION mq.send_one(
    p_type text,
    p_body text,
    p_run_at timestamptz,
    p_priority integer,
    p_group_key text,
    p_dedup_key text,
    p_max_attempts integer,
    p_headers text,
    p_source text,
    p_delay_seconds integer,
    p_on_conflict text,
    OUT id bigint,
    OUT created smallint,
    OUT changed smallint
)
LANGUAGE plpgsql
AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_run_at timestamptz := coalesce(p_run_at, v_now + make_interval(secs => p_delay_seconds), v_now);
    v_priority smallint := coalesce(p_priority, 0);
    v_queue mq.queue := mq.policy(p_type);
BEGIN
    created := 1;
    changed := 0;
    LOOP
        INSERT INTO mq.message AS m (run_at, created_at, priority, max_attempts, type, body, headers, group_key,
            dedup_key, source)
        VALUES (v_run_at, v_now, v_priority, p_max_attempts, p_type, p_body, p_headers, p_group_key, p_dedup_key,
            mq.reader_name(p_source))
        ON CONFLICT (type, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING
        RETURNING m.id INTO id;
        EXIT WHEN FOUND;
        SELECT m.id INTO id FROM mq.message AS m WHERE m.type = p_type AND m.dedup_key = p_dedup_key;
        IF FOUND AND p_on_conflict <> 'keep' THEN
            changed := mq.change_message(v_queue, id, p_on_conflict, v_now, v_run_at, v_priority, p_body, p_headers);
            PERFORM FROM mq.message AS m WHERE m.id = send_one.id;
        END IF;
        IF FOUND THEN
            created := 0;
            RETURN;
        END IF;
        -- The live message was finished between the searches: send after all.
    END LOOP;

    IF v_run_at > v_now THEN
        INSERT INTO mq.delayed (id, run_at, priority, attempts, type) VALUES (send_one.id, v_run_at, v_priority, 0, p_type);
    ELSE
        IF v_queue.ordered THEN
            INSERT INTO mq.grouped (id, attempts, type, group_key)
            VALUES (send_one.id, 0, p_type, coalesce(p_group_key, ''));
        END IF;
        INSERT INTO mq.ready (run_at, id, priority, attempts, type) VALUES (v_run_at, send_one.id, v_priority, 0, p_type);
        IF v_run_at < v_now THEN
            PERFORM mq.lower_mark(p_type);
        END IF;
    END IF;
    IF v_queue.notify THEN
        PERFORM mq.wake(p_type);
    END IF;
END
$$;

-- send: send one message that is ready now.
-- Arguments:   p_type (1 to 200 characters), p_body (up to 16 MiB; text, or jsonb)
-- Returns:     id of the message
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the message can be claimed when it commits
-- Example:     SELECT mq.send('email', '{"to":"ada@example.org"}');
CREATE OR REPLACE FUNCTION mq.send(p_type text, p_body text, OUT id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_queue mq.queue;
    v_wake boolean;
BEGIN
    -- The detailed checks run only if this test fails: each call costs as much as an index search.
    IF (char_length(p_type) BETWEEN 1 AND 200 AND octet_length(p_body) <= 16777216) IS NOT TRUE THEN
        PERFORM mq_internal.require_name('type', p_type, false);
        PERFORM mq_internal.raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    INSERT INTO mq.message AS m (run_at, created_at, priority, type, body, source)
    VALUES (v_now, v_now, 0, p_type, p_body, mq_internal.consumer_name(NULL))
    RETURNING m.id INTO id;
    -- The settings are read only after the transaction has its ID: see convert_rows. In statements of their own, these
    -- questions would take 14 µs more.
    INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id)
    SELECT v_now, send.id, 0, 0, p_type, CASE WHEN current_setting('transaction_isolation') <> 'read committed' THEN false END
    WHERE NOT EXISTS (
        SELECT FROM mq.queue AS q WHERE q.type = ANY (ARRAY[p_type, '']) AND (q.grouped OR q.ring OR q.fair)
    )
    RETURNING EXISTS (SELECT FROM mq.waiter AS w WHERE w.type = p_type AND w.wait_until > v_now) INTO v_wake;
    IF NOT FOUND THEN
        v_queue := mq_internal.policy(p_type);
        IF v_queue.grouped THEN
            INSERT INTO mq.grouped (id, attempts, type, group_key) VALUES (send.id, 0, p_type, '');
        END IF;
        INSERT INTO mq.ready (run_at, id, priority, attempts, type, by_id, lane)
        VALUES (v_now, send.id, 0, 0, p_type, v_queue.grouped, mq_internal.lane(v_queue.fair OR v_queue.grouped, 0, NULL));
        v_wake := true;
    END IF;
    IF v_wake THEN
        PERFORM mq_internal.wake(p_type);
    END IF;
END
$$;

-- A text without a type, such as '{}' or the parameter of most drivers, goes to the function above.
CREATE OR REPLACE FUNCTION mq.send(p_type text, p_body jsonb, OUT id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    id := mq.send(p_type, p_body::text);
END
$$;

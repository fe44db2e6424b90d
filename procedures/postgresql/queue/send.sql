-- send: send one message, ready now.
-- Arguments:   p_type (1 to 200 characters), p_body (up to 16 MiB)
-- Returns:     id
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the message can be claimed when it commits
-- Example:     SELECT mq.send('email', '{"to":"ada@example.org"}');

CREATE OR REPLACE FUNCTION mq.send(
    p_type text,
    p_body text,
    OUT id bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_queue mq.queue;
BEGIN
    PERFORM mq.require_name('type', p_type, false);
    IF p_body IS NULL OR octet_length(p_body) > 16777216 THEN
        PERFORM mq.raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    v_queue := mq.policy(p_type);
    INSERT INTO mq.message AS m (run_at, created_at, priority, type, body, source)
    VALUES (v_now, v_now, 0, p_type, p_body, mq.reader_name(NULL))
    RETURNING m.id INTO id;
    IF v_queue.grouped THEN
        INSERT INTO mq.grouped (id, attempts, type, group_key) VALUES (send.id, 0, p_type, '');
    END IF;
    INSERT INTO mq.ready (run_at, id, priority, attempts, type) VALUES (v_now, send.id, 0, 0, p_type);
    IF v_queue.notify THEN
        PERFORM mq.wake(p_type);
    END IF;
END
$$;

-- set_result: store a result with a claimed message; it is kept with the archived message.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_result (up to 16 MiB)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument, 50008 lease_lost
-- Transaction: joins the caller's; a call that finishes the message waits for it
-- Example:     SELECT mq.set_result(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"pages":3}');
CREATE OR REPLACE FUNCTION mq.set_result(
    p_id bigint,
    p_batch_key uuid,
    p_result text,
    OUT affected bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_type text;
BEGIN
    IF p_id IS NULL OR p_batch_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', CASE WHEN p_id IS NULL THEN 'id' ELSE 'batch_key' END
            || ': must not be NULL');
    END IF;
    IF p_result IS NULL OR octet_length(p_result) > 16777216 THEN
        PERFORM mq_internal.raise_error('invalid_argument', 'result: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    -- Calls for other messages of the batch do not wait, nor do heartbeats.
    SELECT b.type INTO v_type FROM mq.batch AS b WHERE b.batch_key = p_batch_key AND p_id = ANY (b.ids) FOR KEY SHARE;
    IF NOT FOUND THEN
        PERFORM mq_internal.raise_error('lease_lost', format('batch_key: does not hold message %s; roll back, do not retry, continue with the next claim', p_id));
    END IF;
    IF (mq_internal.policy(v_type)).on_complete <> 'archive' THEN
        PERFORM mq_internal.raise_error('invalid_argument',
            'id: the queue keeps no results; call set_queue with on_complete archive');
    END IF;
    INSERT INTO mq.result AS r (id, result) VALUES (p_id, p_result)
    ON CONFLICT (id) DO UPDATE SET result = excluded.result;
    affected := 1;
END
$$;

-- leave_batch: remove one message from the batch that holds it.
-- Returns: type, attempt and consumer of the claim; raises lease_lost when the key does not hold the message
-- Transaction: calls for the same batch wait for each other
CREATE OR REPLACE FUNCTION mq_internal.leave_batch(
    p_id bigint, p_batch_key uuid, OUT type text, OUT attempt smallint, OUT consumer text
)
LANGUAGE plpgsql AS $$
DECLARE
    v_batch mq.batch;
    i integer;
BEGIN
    IF p_id IS NULL OR p_batch_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', CASE WHEN p_id IS NULL THEN 'id' ELSE 'batch_key' END
            || ': must not be NULL');
    END IF;
    SELECT * INTO v_batch FROM mq.batch AS b WHERE b.batch_key = p_batch_key FOR UPDATE;
    i := array_position(v_batch.ids, p_id);
    IF i IS NULL THEN
        PERFORM mq_internal.raise_error('lease_lost',
            format('batch_key: does not hold message %s; roll back, do not retry, continue with the next claim', p_id));
    END IF;
    IF cardinality(v_batch.ids) = 1 THEN
        DELETE FROM mq.batch AS b WHERE b.batch_key = p_batch_key;
    ELSE
        UPDATE mq.batch AS b
        SET ids = v_batch.ids[:i - 1] || v_batch.ids[i + 1:],
            attempts = v_batch.attempts[:i - 1] || v_batch.attempts[i + 1:]
        WHERE b.batch_key = p_batch_key;
    END IF;
    type := v_batch.type;
    attempt := v_batch.attempts[i];
    consumer := v_batch.consumer;
END
$$;

-- hold_message: make sure that a batch key holds a message until the caller's transaction ends; else raise lease_lost, or
--     cancelled.
-- Transaction: what finishes, rescues or releases this message waits or skips it; the other messages of the batch are free
--
-- The row of the message is locked, not that of the batch: its neighbours would wait for the whole transaction of this
-- handler. rescue and release_consumer leave a batch alone while such a row is locked. Above READ COMMITTED the batch is
-- locked too: only so does a snapshot notice that it has been rescued.
CREATE OR REPLACE FUNCTION mq_internal.hold_message(p_id bigint, p_batch_key uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_cancelled_at timestamptz;
BEGIN
    IF p_id IS NULL OR p_batch_key IS NULL THEN
        PERFORM mq_internal.raise_error('invalid_argument', CASE WHEN p_id IS NULL THEN 'id' ELSE 'batch_key' END
            || ': must not be NULL');
    END IF;
    SELECT cancelled_at INTO v_cancelled_at FROM mq.message WHERE id = p_id FOR KEY SHARE;
    IF current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') THEN
        PERFORM FROM mq.batch WHERE batch_key = p_batch_key AND p_id = ANY (ids);
    ELSE
        PERFORM FROM mq.batch WHERE batch_key = p_batch_key AND p_id = ANY (ids) FOR KEY SHARE;
    END IF;
    IF NOT FOUND THEN
        PERFORM mq_internal.raise_error('lease_lost',
            format('batch_key: does not hold message %s; roll back, do not retry, continue with the next claim', p_id));
    END IF;
    IF v_cancelled_at IS NOT NULL THEN
        PERFORM mq_internal.raise_error('cancelled', format('message %s was cancelled; roll back, and end its handler', p_id));
    END IF;
END
$$;

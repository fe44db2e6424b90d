-- drop_cancelled: of messages whose attempt has ended, but not as done, delete those that were cancelled.
CREATE OR REPLACE FUNCTION mq_internal.drop_cancelled(p_queue mq.queue, p_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_ids bigint[] := ARRAY(SELECT id FROM mq.message WHERE id = ANY (p_ids) AND cancelled_at IS NOT NULL);
BEGIN
    IF v_ids <> '{}' THEN
        PERFORM mq_internal.erase(p_queue, v_ids, 'A');
    END IF;
END
$$;

-- is_empty: whether a queue holds no new and no active message.
CREATE OR REPLACE FUNCTION mq_internal.is_empty(p_queue mq.queue) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    RETURN NOT (
        EXISTS (SELECT FROM mq.ready WHERE type = p_queue.type)
        OR EXISTS (SELECT FROM mq.delayed WHERE type = p_queue.type)
        OR EXISTS (SELECT FROM mq.batch WHERE type = p_queue.type)
        OR p_queue.grouped AND EXISTS (SELECT FROM mq.grouped WHERE type = p_queue.type)
    );
END
$$;

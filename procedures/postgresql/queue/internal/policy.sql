-- policy: the settings of a type; the defaults, which are the row with an empty type, when it has none.
CREATE OR REPLACE FUNCTION mq_internal.policy(p_type text) RETURNS mq.queue
LANGUAGE plpgsql AS $$
DECLARE
    v_queue mq.queue;
BEGIN
    SELECT * INTO v_queue FROM mq.queue WHERE type = p_type;
    IF NOT FOUND THEN
        SELECT * INTO v_queue FROM mq.queue WHERE type = '';
        v_queue.type := p_type;
    END IF;
    RETURN v_queue;
END
$$;

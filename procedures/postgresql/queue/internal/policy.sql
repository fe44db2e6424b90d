-- policy: the settings of a type; the defaults when it has no settings.
-- Returns:     one row of mq.queue

CREATE OR REPLACE FUNCTION mq_internal.policy(
    p_type text
) RETURNS mq.queue
LANGUAGE plpgsql
AS $$
DECLARE
    v_queue mq.queue;
BEGIN
    SELECT * INTO v_queue FROM mq.queue WHERE type = p_type;
    IF NOT FOUND THEN
        v_queue := ROW(p_type, 60, 10, 5, 3600, 'delete', false, true, 0, 0, 1, 0, 0, 1, false, NULL, false);
    END IF;
    RETURN v_queue;
END
$$;

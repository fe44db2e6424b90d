-- resume: allow the claims of a paused queue again.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     affected (1; 0 when the queue was not paused), known (0: nothing had this name)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     SELECT mq.resume('email');
CREATE OR REPLACE FUNCTION mq.resume(p_type text, OUT affected bigint, OUT known smallint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    PERFORM mq_internal.require_name('type', p_type, false);
    known := mq_internal.is_known(p_type)::integer;
    IF (mq_internal.policy(p_type)).paused THEN
        PERFORM mq.set_queue(p_type);  -- after pause_all the queue may have no row of its own
    END IF;
    UPDATE mq.queue SET paused = false WHERE type = p_type AND paused;
    GET DIAGNOSTICS affected = ROW_COUNT;
    PERFORM mq_internal.wake(p_type);
END
$$;

-- pause: stop the claims of a queue; claimed messages can still be finished, and sending continues.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     affected (1; 0 when the queue was already paused), known (0: nothing had this name)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     SELECT mq.pause('email');
CREATE OR REPLACE FUNCTION mq.pause(p_type text, OUT affected bigint, OUT known smallint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    SELECT s.known INTO known FROM mq.set_queue(p_type) AS s;
    UPDATE mq.queue SET paused = true WHERE type = p_type AND NOT paused;
    GET DIAGNOSTICS affected = ROW_COUNT;
END
$$;

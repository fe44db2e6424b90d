-- resume_all: allow the claims of all queues again, also of those that pause stopped.
-- Arguments:   none
-- Returns:     changed: 1; 0 when no queue was paused
-- Errors:      none
-- Transaction: joins the caller's; calls for one type wait for each other
-- Example:     SELECT mq.resume_all();
CREATE OR REPLACE FUNCTION mq.resume_all(OUT changed smallint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    -- The row with an empty type holds the defaults: it stands for the queues without settings of their own.
    UPDATE mq.queue SET paused = false WHERE paused;
    changed := FOUND::integer;
    PERFORM mq_internal.wake(type) FROM mq.waiter WHERE wait_until > clock_timestamp();
END
$$;

-- pause_all: stop the claims of all queues, also of those that are first used later; see pause.
-- Arguments:   none
-- Returns:     changed: 1; 0 when all queues were already paused
-- Errors:      none
-- Transaction: joins the caller's; calls for one type wait for each other
-- Example:     SELECT mq.pause_all();
CREATE OR REPLACE FUNCTION mq.pause_all(OUT changed smallint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    -- The row with an empty type holds the defaults: it stands for the queues without settings of their own.
    UPDATE mq.queue SET paused = true WHERE NOT paused;
    changed := FOUND::integer;
END
$$;

-- pause: claims return nothing until resume; what is claimed can be finished; sending goes on.
-- Arguments:   p_type
-- Returns:     count (1: it was running, 0: it was paused already)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     SELECT mq.pause('email');

CREATE OR REPLACE FUNCTION mq.pause(
    p_type text,
    OUT count bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
BEGIN
    PERFORM mq.set_queue(p_type);
    UPDATE mq.queue SET paused = true WHERE type = p_type AND NOT paused;
    GET DIAGNOSTICS count = ROW_COUNT;
END
$$;

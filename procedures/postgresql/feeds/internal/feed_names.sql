-- feed_names: list the names of all feeds.
-- Arguments:   none
-- Returns:     name
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT * FROM mq.feed_names();

CREATE OR REPLACE FUNCTION mq.feed_names(
) RETURNS SETOF text
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
BEGIN
    RETURN QUERY SELECT f.name FROM mq.feed AS f ORDER BY f.name;
END
$$;

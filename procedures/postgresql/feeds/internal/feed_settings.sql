-- feed_settings: the settings of a feed, and nothing of its rows; every caller may read them.
-- Arguments:   p_feed
-- Returns:     its row; all NULL when there is none
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT * FROM mq.feed_settings('orders');

CREATE OR REPLACE FUNCTION mq.feed_settings(
    p_feed text
) RETURNS mq.feed
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
DECLARE
    v_feed mq.feed;
BEGIN
    SELECT * INTO v_feed FROM mq.feed WHERE name = p_feed;
    RETURN v_feed;
END
$$;

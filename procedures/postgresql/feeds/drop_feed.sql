-- drop_feed: forget a feed and its consumers; the table and its numbers stay unchanged.
-- Arguments:   p_feed (1 to 200 characters)
-- Returns:     count: 1; 0 when there is no such feed
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for open transactions that have published this feed
-- Example:     SELECT mq.drop_feed('orders');

CREATE OR REPLACE FUNCTION mq.drop_feed(
    p_feed text,
    OUT count bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
BEGIN
    PERFORM mq.require_name('feed', p_feed, false);
    DELETE FROM mq.feed WHERE name = p_feed;
    count := FOUND::integer;
    DELETE FROM mq.feed_consumer WHERE feed = p_feed;
END
$$;

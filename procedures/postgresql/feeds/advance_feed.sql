-- advance_feed: move a consumer's position forward, past the rows that it has handled.
-- Arguments:   p_feed, p_consumer (1 to 200 characters each), p_position (the last number handled: 0 to the feed's last
--              number)
-- Returns:     position: the consumer's position now; a lower p_position changes nothing
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; waits for other calls that move the same consumer
-- Example:     SELECT mq.advance_feed('orders', 'search', 17);

CREATE OR REPLACE FUNCTION mq.advance_feed(
    p_feed text,
    p_consumer text,
    p_position bigint,
    OUT "position" bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_last bigint;
    v_position bigint;
BEGIN
    PERFORM mq.require_name('feed', p_feed, false);
    PERFORM mq.require_name('consumer', p_consumer, false);
    SELECT f.last_number INTO v_last FROM mq.feed AS f WHERE f.name = p_feed;
    IF NOT FOUND THEN
        PERFORM mq.raise_error('not_found', format('feed: there is no feed %s', p_feed));
    ELSIF p_position IS NULL OR p_position NOT BETWEEN 0 AND v_last THEN
        -- A consumer past the last number would miss the rows numbered later.
        PERFORM mq.raise_error('invalid_argument', format('position: must be 0 to %s, the feed''s last number', v_last));
    END IF;
    INSERT INTO mq.feed_consumer AS c (feed, consumer, position, moved_at)
    VALUES (p_feed, p_consumer, p_position, clock_timestamp())
    ON CONFLICT (feed, consumer) DO UPDATE SET position = excluded.position, moved_at = excluded.moved_at
    WHERE c.position < excluded.position
    RETURNING c.position INTO v_position;
    IF v_position IS NULL THEN
        SELECT c.position INTO v_position FROM mq.feed_consumer AS c WHERE c.feed = p_feed AND c.consumer = p_consumer;
    END IF;
    "position" := v_position;
END
$$;

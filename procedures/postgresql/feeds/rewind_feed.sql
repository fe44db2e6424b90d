-- rewind_feed: move a consumer's position back: the consumer fetches earlier rows again.
-- Arguments:   p_feed, p_consumer (1 to 200 characters each), p_position (0 to the consumer's position; NULL: 0, all rows)
-- Returns:     position: the consumer's position now
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; waits for other calls that move the same consumer
-- Example:     SELECT mq.rewind_feed('orders', 'search');

CREATE OR REPLACE FUNCTION mq.rewind_feed(
    p_feed text,
    p_consumer text,
    p_position bigint DEFAULT NULL,
    OUT "position" bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_new bigint := coalesce(p_position, 0);
    v_position bigint;
BEGIN
    PERFORM mq.require_name('feed', p_feed, false);
    PERFORM mq.require_name('consumer', p_consumer, false);
    IF NOT EXISTS (SELECT FROM mq.feed AS f WHERE f.name = p_feed) THEN
        PERFORM mq.raise_error('not_found', format('feed: there is no feed %s', p_feed));
    END IF;
    SELECT c.position INTO v_position
    FROM mq.feed_consumer AS c WHERE c.feed = p_feed AND c.consumer = p_consumer FOR NO KEY UPDATE;
    IF v_new NOT BETWEEN 0 AND coalesce(v_position, 0) THEN
        PERFORM mq.raise_error('invalid_argument', format('position: must be 0 to %s, the consumer''s position',
            coalesce(v_position, 0)));
    END IF;
    UPDATE mq.feed_consumer AS c SET position = v_new, moved_at = clock_timestamp()
    WHERE c.feed = p_feed AND c.consumer = p_consumer AND c.position > v_new;
    "position" := v_new;
END
$$;

-- rewind_feed: move a consumer's position back: the consumer fetches earlier rows again.
-- Arguments:   p_feed, p_consumer (1 to 200 characters each), p_position (0, all rows, to the consumer's position)
-- Returns:     feed_position: the consumer's position now
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for other calls that move the same consumer
-- Example:     SELECT mq.rewind_feed('orders', 'search', 0);
CREATE OR REPLACE FUNCTION mq.rewind_feed(
    p_feed text,
    p_consumer text,
    p_position bigint,
    OUT feed_position bigint
)
LANGUAGE plpgsql SET search_path = mq, pg_temp SET jit = off AS $$
DECLARE
    v_pass text;
BEGIN
    PERFORM mq_internal.require_name('feed', p_feed, false);
    PERFORM mq_internal.require_name('consumer', p_consumer, false);
    SELECT f.pass INTO v_pass FROM mq_internal.find_feed(p_feed, 'show') AS f;
    feed_position := mq_internal.move_consumer(p_feed, p_consumer, p_position, true, v_pass);
END
$$;

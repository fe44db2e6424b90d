-- rewind_feed: move a consumer's position back: the consumer fetches earlier rows again.
-- Arguments:   p_feed, p_consumer (1 to 200 characters each), p_position (0, all rows, to the consumer's position)
-- Returns:     feed_position: the consumer's position now
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for other calls that move the same consumer; a NO WAIT transaction waits two
--              seconds, then fails with a lock conflict
-- Example:     SELECT * FROM mq_rewind_feed('orders', 'search', 0);

CREATE OR ALTER PROCEDURE mq_rewind_feed (
    p_feed mq_argument,
    p_consumer mq_argument,
    p_position bigint
)
RETURNS (feed_position bigint)
AS
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_stands bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('feed', p_feed, 0);
    EXECUTE PROCEDURE imq_require_name('consumer', p_consumer, 0);
    SELECT quoted FROM imq_find_feed(:p_feed) INTO v_quoted;
    EXECUTE PROCEDURE imq_require_rights(v_quoted, NULL, 0);
    EXECUTE PROCEDURE imq_lock_row('feed_consumer', p_feed, p_consumer) RETURNING_VALUES v_stands;
    feed_position = p_position;
    IF (p_position IS NULL OR p_position NOT BETWEEN 0 AND COALESCE(v_stands, 0)) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'position: must be 0 to ' || COALESCE(v_stands, 0) || ', the consumer''s position' || COALESCE(', not ' || p_position, ''));
    UPDATE mq_feed_consumer SET "POSITION" = :feed_position, moved_at = mq_utc_now()
    WHERE feed = :p_feed AND consumer = :p_consumer AND "POSITION" > :feed_position;
    SUSPEND;
END

-- advance_feed: move a consumer's position forward, past the rows that it has handled.
-- Arguments:   p_feed, p_consumer (1 to 200 characters each), p_position (the last number handled: 0 to the feed's last
--              number)
-- Returns:     feed_position: the consumer's position now; a lower p_position changes nothing
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for other calls that move the same consumer; a NO WAIT transaction waits two
--              seconds, then fails with a lock conflict
-- Example:     SELECT * FROM mq_advance_feed('orders', 'search', 17);

CREATE OR ALTER PROCEDURE mq_advance_feed (
    p_feed mq_argument,
    p_consumer mq_argument,
    p_position bigint
)
RETURNS (feed_position bigint)
AS
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_last bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('feed', p_feed, 0);
    EXECUTE PROCEDURE imq_require_name('consumer', p_consumer, 0);
    SELECT quoted, last_number FROM imq_find_feed(:p_feed) INTO v_quoted, v_last;
    EXECUTE PROCEDURE imq_require_rights(v_quoted, NULL, 0);
    -- A consumer past the last number would miss the rows numbered later.
    IF (p_position IS NULL OR p_position NOT BETWEEN 0 AND v_last) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'position: must be 0 to ' || v_last || ', the feed''s last number' || COALESCE(', not ' || p_position, ''));
    EXECUTE PROCEDURE imq_lock_row('feed_consumer', p_feed, p_consumer) RETURNING_VALUES feed_position;
    IF (feed_position IS NULL) THEN
        EXECUTE PROCEDURE imq_add_number('feed_consumer', p_feed, p_consumer, p_position);
    ELSE IF (p_position > feed_position) THEN
        UPDATE mq_feed_consumer SET "POSITION" = :p_position, moved_at = mq_utc_now()
        WHERE feed = :p_feed AND consumer = :p_consumer;
    feed_position = MAXVALUE(p_position, COALESCE(feed_position, 0));
    SUSPEND;
END

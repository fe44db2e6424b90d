-- advance_feed: move a consumer's position forward, past the rows that it has handled.
-- Arguments:   p_feed, p_consumer (1 to 200 characters each), p_position (the last number handled: 0 to the feed's last
--              number)
-- Returns:     feed_position: the consumer's position now; a lower p_position changes nothing
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for other calls that move the same consumer
-- Example:     CALL mq_advance_feed('orders', 'search', 17);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_advance_feed(
    IN p_feed longtext CHARACTER SET utf8mb4,
    IN p_consumer longtext CHARACTER SET utf8mb4,
    IN p_position bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_last, v_position bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('feed', p_feed, 0);
    CALL imq_require_name('consumer', p_consumer, 0);
    CALL imq_begin_call(0, v_own);
    CALL imq_use_feed(p_feed, 'Select');
    SELECT last_number INTO v_last FROM mq_feed WHERE name = p_feed;
    IF p_position IS NULL OR p_position NOT BETWEEN 0 AND v_last THEN
        -- A consumer past the last number would miss the rows numbered later.
        CALL imq_raise_error('invalid_argument', CONCAT('position: must be 0 to ', v_last, ', the feed''s last number'));
    END IF;
    INSERT INTO mq_feed_consumer (feed, consumer, position, moved_at)
    VALUES (p_feed, p_consumer, p_position, UTC_TIMESTAMP(6))
    ON DUPLICATE KEY UPDATE moved_at = IF(position < p_position, UTC_TIMESTAMP(6), moved_at),
        position = GREATEST(position, p_position);
    SELECT position INTO v_position FROM mq_feed_consumer WHERE feed = p_feed AND consumer = p_consumer FOR UPDATE;
    CALL imq_end_call(v_own);
    SELECT v_position AS feed_position;
END

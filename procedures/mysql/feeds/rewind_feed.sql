-- rewind_feed: move a consumer's position back: the consumer fetches earlier rows again.
-- Arguments:   p_feed, p_consumer (1 to 200 characters each), p_position (0, all rows, to the consumer's position)
-- Returns:     feed_position: the consumer's position now
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for other calls that move the same consumer
-- Example:     CALL mq_rewind_feed('orders', 'search', 0);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_rewind_feed(
    IN p_feed longtext CHARACTER SET utf8mb4,
    IN p_consumer longtext CHARACTER SET utf8mb4,
    IN p_position bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_position bigint;
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
    SELECT COALESCE(MAX(c.position), 0) INTO v_position
    FROM (SELECT position FROM mq_feed_consumer WHERE feed = p_feed AND consumer = p_consumer FOR UPDATE) AS c;
    IF (p_position BETWEEN 0 AND v_position) IS NOT TRUE THEN
        CALL imq_raise_error('invalid_argument', CONCAT('position: must be 0 to ', v_position, ', the consumer''s position'));
    END IF;
    UPDATE mq_feed_consumer SET position = p_position, moved_at = UTC_TIMESTAMP(6)
    WHERE feed = p_feed AND consumer = p_consumer AND position > p_position;
    CALL imq_end_call(v_own);
    SELECT p_position AS feed_position;
END

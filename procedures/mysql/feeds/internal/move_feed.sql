-- move_feed: advance a feed's counter, for a caller with the right to publish the feed.
-- Arguments:   p_feed, p_count (numbers given: 1 to 10,000)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_move_feed(
    IN p_feed longtext CHARACTER SET utf8mb4, IN p_count bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_require_range('count', p_count, 1, 10000);
    CALL imq_use_feed(p_feed, 'Select,Update');
    UPDATE mq_feed SET last_number = last_number + p_count WHERE name = p_feed;
END

-- move_feed: advance a feed's counter, for a caller with the right to publish the feed.
-- Arguments:   p_feed, p_count (numbers given: 1 to 10,000)
-- Returns:     nothing
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's
-- Example:     CALL mq_move_feed('orders', 100);

DROP PROCEDURE IF EXISTS mq_move_feed;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_move_feed(
    IN p_feed longtext CHARACTER SET utf8mb4,
    IN p_count bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    CALL mq_require_range('count', p_count, 1, 10000);
    CALL mq_use_feed(p_feed, 'Select,Update');
    UPDATE mq_feed SET last_number = last_number + p_count WHERE name = p_feed;
END//

DELIMITER ;

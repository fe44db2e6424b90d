-- drop_feed: forget a feed and its consumers; the table and its numbers stay unchanged.
-- Arguments:   p_feed (1 to 200 characters)
-- Returns:     count: 1; 0 when there is no such feed
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for open transactions that have published this feed
-- Example:     CALL mq_drop_feed('orders');

DROP PROCEDURE IF EXISTS mq_drop_feed;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_drop_feed(
    IN p_feed longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL mq_require_name('feed', p_feed, 0);
    CALL mq_begin_call(0, v_own);
    DELETE FROM mq_feed WHERE name = p_feed;
    SET v_count = ROW_COUNT();
    DELETE FROM mq_feed_consumer WHERE feed = p_feed;
    CALL mq_end_call(v_own);
    SELECT v_count AS count;
END//

DELIMITER ;

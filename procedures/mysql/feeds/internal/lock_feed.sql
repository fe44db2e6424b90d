-- lock_feed: lock a feed's counter, for a caller with the right to publish the feed.
-- Arguments:   p_feed
-- Returns:     p_last_number
-- Errors:      50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's
-- Example:     CALL mq_lock_feed('orders', v_last);

DROP PROCEDURE IF EXISTS mq_lock_feed;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_lock_feed(
    IN p_feed longtext CHARACTER SET utf8mb4,
    OUT p_last_number bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    CALL mq_use_feed(p_feed, 'Select,Update');
    SET p_last_number = NULL;
    SELECT last_number INTO p_last_number FROM mq_feed WHERE name = p_feed FOR UPDATE;
    IF p_last_number IS NULL THEN
        CALL mq_raise_error('not_found', CONCAT('feed: there is no feed ', p_feed));
    END IF;
END//

DELIMITER ;

-- lock_feed: lock a feed's counter, for a caller with the right to publish the feed.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_lock_feed(
    IN p_feed longtext CHARACTER SET utf8mb4, OUT p_last_number bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_use_feed(p_feed, 'Select,Update');
    SET p_last_number = NULL;
    SELECT last_number INTO p_last_number FROM mq_feed WHERE name = p_feed FOR UPDATE;
    IF p_last_number IS NULL THEN
        CALL imq_raise_error('not_found', CONCAT('feed: there is no feed ', p_feed));
    END IF;
END

-- feed_names: list the names of the feeds.
-- Arguments:   p_feed (NULL: all)
-- Returns:     p_feeds: a JSON array of names; NULL when there are none
-- Errors:      none
-- Transaction: reads only
-- Example:     CALL mq_feed_names(NULL, v_feeds);

DROP PROCEDURE IF EXISTS mq_feed_names;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_feed_names(
    IN p_feed longtext CHARACTER SET utf8mb4,
    OUT p_feeds longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(name) ORDER BY name), ']') INTO p_feeds
    FROM mq_feed WHERE p_feed IS NULL OR name = p_feed;
END//

DELIMITER ;

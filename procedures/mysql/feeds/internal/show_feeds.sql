-- show_feeds: return the rows of list_feeds.
-- Arguments:   p_feed (NULL: all), p_unpublished (for the column of that name)
-- Returns:     the result set of list_feeds

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_show_feeds(
    IN p_feed longtext CHARACTER SET utf8mb4, IN p_unpublished bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    SELECT f.name AS feed, CONCAT(f.table_schema, IF(f.table_schema = '', '', '.'), f.table_name) AS table_name,
        f.last_number AS last_position, p_unpublished AS unpublished, c.consumer, c.position AS feed_position, f.last_number - c.position AS behind, c.moved_at
    FROM mq_feed AS f
    LEFT JOIN mq_feed_consumer AS c ON c.feed = f.name
    WHERE p_feed IS NULL OR f.name = p_feed
    ORDER BY f.name, c.consumer;
END

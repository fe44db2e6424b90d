-- show_feeds: return the rows of feed_stats.
-- Arguments:   p_counts (a JSON array of [feed, unpublished])
-- Returns:     the result set of feed_stats
-- Errors:      none
-- Transaction: reads only
-- Example:     CALL mq_show_feeds('[["orders",3]]');

DROP PROCEDURE IF EXISTS mq_show_feeds;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_show_feeds(
    IN p_counts longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    SELECT f.name AS feed, CONCAT(f.table_schema, IF(f.table_schema = '', '', '.'), f.table_name) AS `table`,
        f.last_number AS last_position, j.unpublished, c.consumer, c.position, f.last_number - c.position AS behind, c.moved_at
    FROM JSON_TABLE(p_counts, '$[*]' COLUMNS (name varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
        unpublished bigint PATH '$[1]')) AS j
    JOIN mq_feed AS f ON CAST(f.name AS binary) = CAST(j.name AS binary)
    LEFT JOIN mq_feed_consumer AS c ON c.feed = f.name
    ORDER BY f.name, c.consumer;
END//

DELIMITER ;

-- feed_settings: return a feed's settings and a consumer's position.
-- Returns:     p_settings: a JSON object: schema, table, label, sync, keys (a JSON array), last, position

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_feed_settings(
    IN p_feed longtext CHARACTER SET utf8mb4, IN p_consumer longtext CHARACTER SET utf8mb4,
    OUT p_settings longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    SET p_settings = NULL;
    SELECT JSON_OBJECT('schema', CONVERT(IF(f.table_schema = '', DATABASE(), f.table_schema) USING utf8mb4),
        'table', CONVERT(f.table_name USING utf8mb4),
        'label', CONVERT(CONCAT(f.table_schema, IF(f.table_schema = '', '', '.'), f.table_name) USING utf8mb4),
        'sync', CONVERT(f.sync_column USING utf8mb4), 'keys', CONVERT(f.key_columns USING utf8mb4), 'last', f.last_number,
        'position', COALESCE((SELECT c.position FROM mq_feed_consumer AS c WHERE c.feed = f.name AND c.consumer = p_consumer), 0))
    INTO p_settings
    FROM mq_feed AS f WHERE f.name = p_feed;
    IF p_settings IS NULL THEN
        CALL imq_raise_error('not_found', CONCAT('feed: there is no feed ', p_feed));
    END IF;
END

-- feed_stats: list each feed with its consumers and their positions.
-- Arguments:   p_feed (1 to 200 characters; NULL: all feeds)
-- Returns:     feed, table, last_position, unpublished (counted up to 10,000; NULL: the caller cannot read the table),
--              consumer, position, behind (last_position minus position), moved_at: one row per consumer; a feed without
--              consumers has one row
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     CALL mq_feed_stats(NULL);
--
-- The result must be one result set: the counts of the tables are first collected as JSON.

DROP PROCEDURE IF EXISTS mq_feed_stats;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_feed_stats(
    IN p_feed longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    DECLARE v_feed varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_feeds, v_columns, v_keys, v_places longtext CHARACTER SET utf8mb4;
    DECLARE v_last, v_position, v_unpublished, v_nothing bigint;
    DECLARE v_n int DEFAULT 0;
    DECLARE v_counts longtext CHARACTER SET utf8mb4 DEFAULT '[]';
    CALL mq_require_name('feed', p_feed, 1);
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    CALL mq_feed_names(p_feed, v_feeds);
    WHILE v_n < COALESCE(JSON_LENGTH(v_feeds), 0) DO
        SET v_feed = JSON_UNQUOTE(JSON_EXTRACT(v_feeds, CONCAT('$[', v_n, ']'))), v_n = v_n + 1, v_unpublished = NULL;
        BEGIN
            -- The table was dropped or changed, or the caller may not read it: unpublished stays NULL.
            DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END;
            CALL mq_find_feed(v_feed, NULL, v_last, v_position, v_columns, v_keys, v_places);
            CALL mq_run_template(v_places,
                'SELECT COUNT(*) INTO @mq_n
                FROM (SELECT 1 FROM {table} AS t {index} WHERE t.{sync} IS NULL LIMIT 10000) AS u', v_nothing);
            SET v_unpublished = @mq_n;
        END;
        SET v_counts = JSON_ARRAY_APPEND(v_counts, '$', JSON_ARRAY(v_feed, v_unpublished));
    END WHILE;
    SET @mq_n = NULL;
    CALL mq_show_feeds(v_counts);
END//

DELIMITER ;

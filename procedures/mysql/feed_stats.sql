-- feed_stats: each feed with its consumers and how far they are.
-- Arguments:   p_feed (NULL: all)
-- Returns:     feed, table, last_position, unpublished (counted up to 10,000; NULL: its table cannot be read), consumer,
--              position, behind, moved_at; a feed without consumers has one row
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     CALL mq_feed_stats(NULL);
--
-- A caller gets one result set: what is counted table by table is put together as JSON first.

DROP PROCEDURE IF EXISTS mq_feed_stats;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_feed_stats(
    IN p_feed longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_feed, v_sync, v_index varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_table, v_label, v_keys longtext CHARACTER SET utf8mb4;
    DECLARE v_last bigint;
    DECLARE v_end tinyint DEFAULT 0;
    DECLARE v_counts longtext CHARACTER SET utf8mb4 DEFAULT '[]';
    DECLARE v_feeds CURSOR FOR SELECT name FROM mq_feed WHERE p_feed IS NULL OR name = p_feed;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = 1;
    CALL mq_require_name('feed', p_feed, 1);
    OPEN v_feeds;
    feeds: LOOP
        FETCH v_feeds INTO v_feed;
        IF v_end THEN
            LEAVE feeds;
        END IF;
        SET @mq_n = NULL;
        BEGIN
            -- Dropped, changed or closed to us: the rest is told all the same.
            DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END;
            CALL mq_find_feed(v_feed, v_last, v_table, v_sync, v_label, v_keys, v_index);
            SET @mq_sql = CONCAT('SELECT COUNT(*) INTO @mq_n FROM (SELECT 1 FROM ', v_table, ' AS t ', v_index, ' WHERE t.', v_sync,
                ' IS NULL LIMIT 10000) AS u');
            PREPARE mq_statement FROM @mq_sql;
            EXECUTE mq_statement;
            DEALLOCATE PREPARE mq_statement;
        END;
        SET v_counts = JSON_ARRAY_APPEND(v_counts, '$', JSON_ARRAY(v_feed, @mq_n));
    END LOOP;
    CLOSE v_feeds;
    SET @mq_sql = NULL, @mq_n = NULL;
    SELECT f.name AS feed, CONCAT(f.table_schema, IF(f.table_schema = '', '', '.'), f.table_name) AS `table`,
        f.last_number AS last_position, j.unpublished, c.consumer, c.position, f.last_number - c.position AS behind, c.moved_at
    FROM JSON_TABLE(v_counts, '$[*]' COLUMNS (name varchar(200) CHARACTER SET utf8mb4 PATH '$[0]',
        unpublished bigint PATH '$[1]')) AS j
    JOIN mq_feed AS f ON CAST(f.name AS binary) = CAST(j.name AS binary)
    LEFT JOIN mq_feed_consumer AS c ON c.feed = f.name
    ORDER BY f.name, c.consumer;
END//

DELIMITER ;

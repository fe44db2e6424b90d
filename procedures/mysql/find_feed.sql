-- find_feed: a feed and how its table is read.
-- Arguments:   p_feed
-- Returns:     p_last_number, p_table and p_sync (for SQL), p_label, p_keys (as mq_find_columns tells columns), p_index (a
--              hint: the index that begins with the sync column)
-- Errors:      50005 not_found (also when the table was dropped), 50006 unsuitable_table (when a column was)
-- Transaction: reads only
-- Example:     CALL mq_find_feed('orders', v_last, v_table, v_sync, v_label, v_keys, v_index);

DROP PROCEDURE IF EXISTS mq_find_feed;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_find_feed(
    IN p_feed longtext CHARACTER SET utf8mb4,
    OUT p_last_number bigint,
    OUT p_table longtext CHARACTER SET utf8mb4,
    OUT p_sync varchar(200) CHARACTER SET utf8mb4,
    OUT p_label longtext CHARACTER SET utf8mb4,
    OUT p_keys longtext CHARACTER SET utf8mb4,
    OUT p_index varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_name, v_sync, v_lost varchar(64) CHARACTER SET utf8mb4;
    DECLARE v_keys longtext CHARACTER SET utf8mb4;
    DECLARE v_known, v_keys_known int;
    SELECT last_number, IF(table_schema = '', DATABASE(), table_schema), table_name, sync_column, key_columns,
        CONCAT(table_schema, IF(table_schema = '', '', '.'), table_name)
    INTO p_last_number, v_schema, v_name, v_sync, v_keys, p_label
    FROM mq_feed WHERE name = p_feed;
    IF p_last_number IS NULL THEN
        CALL mq_raise_error('not_found', CONCAT('feed: there is no feed ', p_feed));
    END IF;
    SET p_table = CONCAT('`', REPLACE(v_schema, '`', '``'), '`.`', REPLACE(v_name, '`', '``'), '`');
    SET p_sync = CONCAT('`', REPLACE(v_sync, '`', '``'), '`');
    SELECT COUNT(*), SUM(c.column_name = v_sync), COUNT(j.n),
        CONCAT('[', GROUP_CONCAT(IF(j.n IS NULL, NULL, JSON_OBJECT('n', j.n, 'name', CONVERT(c.column_name USING utf8mb4),
            'quoted', CONCAT('`', REPLACE(c.column_name, '`', '``'), '`'))) ORDER BY j.n), ']')
    INTO v_known, v_lost, v_keys_known, p_keys
    FROM information_schema.columns AS c
    LEFT JOIN JSON_TABLE(v_keys, '$[*]' COLUMNS (n FOR ORDINALITY, name varchar(64) CHARACTER SET utf8mb4 PATH '$')) AS j
        ON CAST(j.name AS binary) = CAST(CONVERT(c.column_name USING utf8mb4) AS binary)
    WHERE c.table_schema = v_schema AND c.table_name = v_name;
    IF v_known = 0 THEN
        CALL mq_raise_error('not_found', CONCAT('table: ', LEFT(p_label, 40), ' is gone, or mq_owner may not see it: '
            'GRANT SELECT, UPDATE to ''mq_owner''@''localhost'''));
    ELSEIF v_lost = 0 OR v_keys_known < JSON_LENGTH(v_keys) THEN
        CALL mq_raise_error('unsuitable_table', CONCAT(LEFT(p_label, 50), ' has lost column ', LEFT(v_sync, 20), ' or one of its key'));
    END IF;
    SELECT CONCAT('FORCE INDEX (`', REPLACE(MIN(s.index_name), '`', '``'), '`)') INTO p_index
    FROM information_schema.statistics AS s
    WHERE s.table_schema = v_schema AND s.table_name = v_name AND s.column_name = v_sync AND s.seq_in_index = 1
        AND s.index_type = 'BTREE' /*M! AND s.ignored = 'NO' */ /*!80000 AND s.is_visible = 'YES' */;
    SET p_index = COALESCE(p_index, '');
END//

DELIMITER ;

-- find_feed: return a feed, with its table and columns ready for SQL.
-- Returns:     p_last_number, p_position; p_columns (as imq_read_columns returns them), p_keys (as imq_find_columns returns
--              columns); p_places, for imq_run_template: table and sync (quoted), index (a hint to use the index on the sync
--              column), schema, name, label

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_find_feed(
    IN p_feed longtext CHARACTER SET utf8mb4, IN p_consumer longtext CHARACTER SET utf8mb4, OUT p_last_number bigint,
    OUT p_position bigint, OUT p_columns longtext CHARACTER SET utf8mb4, OUT p_keys longtext CHARACTER SET utf8mb4,
    OUT p_places longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_settings, v_keys, v_label longtext CHARACTER SET utf8mb4;
    -- The catalog's own character set: with another one the server scans the whole catalog.
    DECLARE v_schema, v_name, v_sync varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci;
    DECLARE v_index varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_found, v_keys_found int;
    CALL imq_feed_settings(p_feed, p_consumer, v_settings);
    SELECT s.schema_, s.table_, s.label, s.sync, s.keys_, s.last_, s.position_
    INTO v_schema, v_name, v_label, v_sync, v_keys, p_last_number, p_position
    FROM JSON_TABLE(v_settings, '$' COLUMNS (schema_ varchar(64) CHARACTER SET utf8mb4 PATH '$.schema',
        table_ varchar(64) CHARACTER SET utf8mb4 PATH '$.table', label longtext CHARACTER SET utf8mb4 PATH '$.label',
        sync varchar(64) CHARACTER SET utf8mb4 PATH '$.sync', keys_ longtext CHARACTER SET utf8mb4 PATH '$.keys',
        last_ bigint PATH '$.last', position_ bigint PATH '$.position')) AS s;
    CALL imq_read_columns(v_schema, v_name, p_columns);
    SELECT SUM(CAST(c.name AS binary) = CAST(CONVERT(v_sync USING utf8mb4) AS binary) AND c.kind = 'bigint' AND NOT c.computed),
        COUNT(j.n),
        CONCAT('[', GROUP_CONCAT(IF(j.n IS NULL, NULL, JSON_OBJECT('n', j.n, 'name', c.name,
            'quoted', CONCAT('`', REPLACE(c.name, '`', '``'), '`'))) ORDER BY j.n), ']')
    INTO v_found, v_keys_found, p_keys
    FROM JSON_TABLE(p_columns, '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$.name',
        kind varchar(64) CHARACTER SET utf8mb4 PATH '$.kind', computed tinyint PATH '$.computed')) AS c
    LEFT JOIN JSON_TABLE(v_keys, '$[*]' COLUMNS (n FOR ORDINALITY, name varchar(64) CHARACTER SET utf8mb4 PATH '$')) AS j
        ON CAST(j.name AS binary) = CAST(c.name AS binary);
    IF v_found = 0 OR v_keys_found < JSON_LENGTH(v_keys) THEN
        CALL imq_raise_error('unsuitable_table', CONCAT(LEFT(v_label, 50), ' has no column ', LEFT(v_sync, 20),
            ' or key column any more, or it is computed or no bigint'));
    END IF;
    SELECT CONCAT('FORCE INDEX (`', REPLACE(MIN(s.index_name), '`', '``'), '`)') INTO v_index
    FROM information_schema.statistics AS s
    WHERE s.table_schema = v_schema AND s.table_name = v_name AND s.column_name = v_sync AND s.seq_in_index = 1
        AND s.index_type = 'BTREE' /*M! AND s.ignored = 'NO' */ /*!80000 AND s.is_visible = 'YES' */;
    SET p_places = JSON_OBJECT('schema', CONVERT(v_schema USING utf8mb4), 'name', CONVERT(v_name USING utf8mb4), 'label', v_label,
        'table', CONVERT(CONCAT('`', REPLACE(v_schema, '`', '``'), '`.`', REPLACE(v_name, '`', '``'), '`') USING utf8mb4),
        'sync', CONVERT(CONCAT('`', REPLACE(v_sync, '`', '``'), '`') USING utf8mb4), 'index', COALESCE(v_index, ''));
END

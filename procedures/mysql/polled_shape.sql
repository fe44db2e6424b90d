-- polled_shape: the pieces of SQL that an adopted table is read and written by.
-- Arguments:   p_name (the adopted table)
-- Returns:     p_shape: a JSON object of texts, '' for none: shape (a to f), quoted; keys (the key columns for an IN), ident and
--              bare (its identity as SQL: expressions over the alias t, and over the table's own name), key, row (JSON, over t),
--              status, sort, ordered (columns over t), place (an expression over t), by_key, by_claim (how to reach the index),
--              ready, active, done, error (literals)
-- Errors:      50005 not_found, 50006 unsuitable_table, when the table or a column is not there any more
-- Transaction: reads the catalog, and the row of the adopted table
-- Example:     CALL mq_polled_shape('orders', v_shape);

DROP PROCEDURE IF EXISTS mq_polled_shape;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_polled_shape(
    IN p_name varchar(200) CHARACTER SET utf8mb4,
    OUT p_shape longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
shaping: BEGIN
    DECLARE v_quoted, v_label, v_keys, v_found, v_key, v_row, v_ident, v_bare, v_order, v_status, v_sort
        longtext CHARACTER SET utf8mb4;
    DECLARE v_ready, v_active, v_done, v_error, v_place, v_names, v_list, v_print longtext CHARACTER SET utf8mb4;
    DECLARE v_schema, v_table varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_by_key, v_by_claim varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_delete tinyint;
    SELECT quoted, key_columns, order_column, status_column, on_complete = 'delete', ready_value, active_value, done_value,
        error_value, key_index, claim_index, shape
    INTO v_quoted, v_keys, v_order, v_status, v_delete, v_ready, v_active, v_done, v_error, v_by_key, v_by_claim, p_shape
    FROM mq_polled WHERE name = p_name;
    -- With more keys in a list than this has room for, the server would read the whole table.
    /*!80000 SET SESSION range_optimizer_max_mem_size = 0; */
    -- A look at the catalog takes a millisecond, and on a new server many: one, unless the columns have changed.
    SELECT s.`schema`, s.`table`, s.print INTO v_schema, v_table, v_label
    FROM JSON_TABLE(p_shape, '$' COLUMNS (
        `schema` varchar(200) CHARACTER SET utf8mb4 PATH '$.schema', `table` varchar(200) CHARACTER SET utf8mb4 PATH '$.table',
        print longtext CHARACTER SET utf8mb4 PATH '$.print'
    )) AS s;
    SELECT SHA2(GROUP_CONCAT(c.column_name, ' ', c.column_type ORDER BY c.ordinal_position), 256) INTO v_print
    FROM information_schema.columns AS c WHERE c.table_schema = v_schema AND c.table_name = v_table;
    IF v_label = v_print THEN
        LEAVE shaping;
    END IF;
    CALL mq_find_table('table', v_quoted, v_schema, v_table, v_quoted, v_label);
    SET v_schema = IF(v_schema = '', DATABASE(), v_schema);

    -- Texts as hexadecimal digits, which no SQL mode reads otherwise; a moment without the session's time zone.
    SELECT GROUP_CONCAT(IF(k.n IS NULL, NULL, k.quoted) ORDER BY k.n SEPARATOR ', '),
        GROUP_CONCAT(IF(k.n IS NULL, NULL, IF(v_keys IS NULL,
            CONCAT('_utf8mb4 0x', HEX(CONCAT(IF(k.first, '', ' AND '), v_quoted, '.', k.bare, ' <=> ')), ', COALESCE(',
                REPLACE(k.literal, '{}', k.quoted), ', ''NULL'')'),
            REPLACE(k.literal, '{}', k.quoted))) ORDER BY k.n SEPARATOR ', '','', '),
        GROUP_CONCAT(IF(k.n IS NULL, NULL,
            CONCAT('_utf8mb4 0x', HEX(CONCAT(IF(k.first, '', ' AND '), v_quoted, '.', k.bare, ' <=> ')), ', COALESCE(',
                REPLACE(k.literal, '{}', CONCAT(v_quoted, '.', k.bare)), ', ''NULL'')')) ORDER BY k.n SEPARATOR ', '','', '),
        MAX(IF(k.ordered, k.quoted, NULL)), MAX(IF(k.ordered, REPLACE(k.literal, '{}', k.quoted), NULL)),
        MAX(IF(k.status, k.bare, NULL)),
        CONCAT('[', GROUP_CONCAT(IF(k.n IS NULL, NULL, JSON_OBJECT('n', k.n, 'name', k.column_name)) ORDER BY k.n), ']')
    INTO v_list, v_ident, v_bare, v_sort, v_place, v_names, v_found
    FROM (
        SELECT v.*, v.n <=> MIN(v.n) OVER () AS first,
            CASE
                WHEN v.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'year', 'double')
                    THEN 'CONVERT({} USING utf8mb4)'
                WHEN v.data_type = 'float' THEN 'CONVERT({} + 0e0 USING utf8mb4)'
                WHEN v.data_type = 'bit' THEN 'CONVERT({} + 0 USING utf8mb4)'
                WHEN v.data_type IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob')
                    THEN 'CONCAT(''x'''''', HEX({}), '''''''')'
                WHEN v.data_type IN ('date', 'datetime', 'time') THEN 'CONCAT('''''''', CONVERT({} USING utf8mb4), '''''''')'
                WHEN v.data_type = 'timestamp' THEN 'CONCAT(''FROM_UNIXTIME('', UNIX_TIMESTAMP({}), '')'')'
                ELSE 'CONCAT(''_utf8mb4 x'''''', HEX(CONVERT({} USING utf8mb4)), '''''''')'
            END AS literal
        FROM (
            SELECT CONVERT(c.column_name USING utf8mb4) AS column_name, c.data_type,
                IF(v_keys IS NULL, IF(CONVERT(c.column_name USING utf8mb4) <=> v_status COLLATE utf8mb4_general_ci, NULL,
                    c.ordinal_position), j.n) AS n,
                CONCAT('`t`.`', REPLACE(c.column_name, '`', '``'), '`') AS quoted,
                CONCAT('`', REPLACE(c.column_name, '`', '``'), '`') AS bare,
                CONVERT(c.column_name USING utf8mb4) = COALESCE(v_order, IF(JSON_LENGTH(v_keys) = 1,
                    JSON_UNQUOTE(JSON_EXTRACT(v_keys, '$[0]')), NULL)) COLLATE utf8mb4_general_ci AS ordered,
                CONVERT(c.column_name USING utf8mb4) = v_status COLLATE utf8mb4_general_ci AS status
            FROM information_schema.columns AS c
            LEFT JOIN JSON_TABLE(COALESCE(v_keys, '[]'), '$[*]' COLUMNS (
                n FOR ORDINALITY, name varchar(200) CHARACTER SET utf8mb4 PATH '$'
            )) AS j ON CAST(j.name AS binary) = CAST(CONVERT(c.column_name USING utf8mb4) AS binary)
            WHERE c.table_schema = v_schema AND c.table_name = v_table
        ) AS v
    ) AS k;
    IF v_order IS NOT NULL AND v_sort IS NULL OR v_status IS NOT NULL AND v_names IS NULL
        OR JSON_LENGTH(COALESCE(v_found, '[]')) < COALESCE(JSON_LENGTH(v_keys), 1)
    THEN
        CALL mq_raise_error('unsuitable_table', CONCAT(LEFT(v_label, 60), ' has lost a column that it was adopted with'));
    END IF;
    IF v_keys IS NULL THEN
        SET v_ident = CONCAT('CONCAT(', REPLACE(v_ident, ', '','', _utf8mb4 0x', ', _utf8mb4 0x'), ')'),
            v_bare = CONCAT('CONCAT(', REPLACE(v_bare, ', '','', _utf8mb4 0x', ', _utf8mb4 0x'), ')');
    ELSEIF JSON_LENGTH(v_keys) > 1 THEN
        SET v_ident = CONCAT('CONCAT(''('', ', v_ident, ', '')'')');
    END IF;
    SELECT SHA2(GROUP_CONCAT(c.column_name, ' ', c.column_type ORDER BY c.ordinal_position), 256) INTO v_print
    FROM information_schema.columns AS c WHERE c.table_schema = v_schema AND c.table_name = v_table;
    CALL mq_row_json(v_quoted, v_found, 't', v_key);
    CALL mq_row_json(v_quoted, NULL, 't', v_row);
    SET p_shape = JSON_OBJECT('shape', IF(v_status IS NOT NULL, IF(v_keys IS NULL, 'c', 'a'), IF(v_delete, IF(v_keys IS NULL, 'f', 'e'),
            IF(v_keys IS NULL, 'd', 'b'))),
        'quoted', v_quoted,
        'schema', v_schema,
        'table', v_table,
        'print', v_print,
        'keys', IF(v_keys IS NULL, '', CONCAT('(', v_list, ')')),
        'ident', v_ident,
        'bare', v_bare,
        'key', v_key,
        'row', v_row,
        'status', COALESCE(v_names, ''),
        'sort', IF(v_order IS NULL, IF(v_keys IS NULL, '', v_list), v_sort),
        'ordered', COALESCE(v_sort, ''),
        'place', COALESCE(v_place, ''),
        'by_key', IF(v_by_key IS NULL, '', CONCAT('FORCE INDEX (`', REPLACE(v_by_key, '`', '``'), '`)')),
        'by_claim', IF(v_by_claim IS NULL, '', CONCAT('FORCE INDEX (`', REPLACE(v_by_claim, '`', '``'), '`)')),
        'ready', COALESCE(CONCAT('_utf8mb4 x''', HEX(v_ready), ''''), ''),
        'active', COALESCE(CONCAT('_utf8mb4 x''', HEX(v_active), ''''), ''),
        'done', COALESCE(CONCAT('_utf8mb4 x''', HEX(v_done), ''''), ''),
        'error', COALESCE(CONCAT('_utf8mb4 x''', HEX(v_error), ''''), ''));
END//

DELIMITER ;

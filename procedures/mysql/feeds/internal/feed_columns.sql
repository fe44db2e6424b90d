-- feed_columns: return the SQL by which publish_feed reads and compares the key of a feed's table.
-- Arguments:   p_places and p_keys (as imq_find_feed returns them)
-- Returns:     p_columns: a JSON object of placeholders for imq_run_template: picked (the key columns with aliases), order
--              (these aliases), texts (their values as a JSON list), columns (the types in such a list, for JSON_TABLE),
--              equal (compares a row c of the list with a row t of the table), kept (columns that the UPDATE must not
--              change), unique (an index hint)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_feed_columns(
    IN p_places longtext CHARACTER SET utf8mb4, IN p_keys longtext CHARACTER SET utf8mb4,
    OUT p_columns longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    -- The catalog's own character set: with another one the server scans the whole catalog.
    DECLARE v_schema varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci
        DEFAULT JSON_UNQUOTE(JSON_EXTRACT(p_places, '$.schema'));
    DECLARE v_name varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci
        DEFAULT JSON_UNQUOTE(JSON_EXTRACT(p_places, '$.name'));
    DECLARE v_kept, v_unique longtext CHARACTER SET utf8mb4;
    -- ON UPDATE columns must keep the writer's value.
    SELECT GROUP_CONCAT(', t.`', REPLACE(c.column_name, '`', '``'), '` = t.`',
        REPLACE(c.column_name, '`', '``'), '`' SEPARATOR '')
    INTO v_kept
    FROM information_schema.columns AS c
    WHERE c.table_schema = v_schema AND c.table_name = v_name AND c.extra LIKE '%on update%';
    -- Use the unique index: a scan would wait for rows that others have locked.
    SELECT MAX(CONCAT('FORCE INDEX (`', REPLACE(u.index_name, '`', '``'), '`)')) INTO v_unique
    FROM (
        SELECT s.index_name
        FROM information_schema.statistics AS s
        LEFT JOIN JSON_TABLE(p_keys, '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$.name')) AS j
            ON CAST(j.name AS binary) = CAST(CONVERT(s.column_name USING utf8mb4) AS binary)
        WHERE s.table_schema = v_schema AND s.table_name = v_name
            AND s.non_unique = 0 /*M! AND s.ignored = 'NO' */ /*!80000 AND s.is_visible = 'YES' */
        GROUP BY s.index_name
        HAVING COUNT(*) = COUNT(j.name) AND SUM(s.nullable = 'YES') = 0
        ORDER BY s.index_name <> 'PRIMARY', s.index_name LIMIT 1
    ) AS u;
    -- For each type: a value as text, its type in the list, and the value that the column is compared with.
    SELECT JSON_OBJECT('picked', GROUP_CONCAT('t.', k.quoted, ' AS k', k.n), 'order', GROUP_CONCAT('r.k', k.n ORDER BY k.n),
        'texts', GROUP_CONCAT(k.text ORDER BY k.n SEPARATOR ', '','', '),
        'columns', GROUP_CONCAT('k', k.n, ' ', k.type, ' PATH ''$[', k.n - 1, ']''' SEPARATOR ', '),
        'equal', GROUP_CONCAT('t.', k.quoted, ' = ', k.value SEPARATOR ' AND '),
        'kept', COALESCE(v_kept, ''), 'unique', COALESCE(v_unique, ''))
    INTO p_columns
    FROM (
        SELECT j.n, j.quoted,
            CASE
                WHEN c.data_type IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob')
                    THEN CONCAT('''"'', HEX(r.k', j.n, '), ''"''')
                WHEN c.data_type IN ('float', 'bit') THEN CONCAT('''"'', CONVERT(r.k', j.n, ' + 0e0 USING utf8mb4), ''"''')
                ELSE CONCAT('JSON_QUOTE(CONVERT(r.k', j.n, ' USING utf8mb4))')
            END AS text,
            CASE
                WHEN c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint') AND c.column_type LIKE '%unsigned%'
                    OR c.data_type = 'bit' THEN 'bigint unsigned'
                WHEN c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'year') THEN 'bigint'
                WHEN c.data_type = 'decimal' THEN CONCAT('decimal(', c.numeric_precision, ',', c.numeric_scale, ')')
                WHEN c.data_type IN ('float', 'double') THEN 'double'
                ELSE 'text CHARACTER SET utf8mb4'
            END AS type,
            CASE
                WHEN c.data_type IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob')
                    THEN CONCAT('UNHEX(c.k', j.n, ')')
                WHEN c.character_set_name IS NOT NULL
                    THEN CONCAT('CONVERT(c.k', j.n, ' USING ', c.character_set_name, ') COLLATE ', c.collation_name)
                ELSE CONCAT('c.k', j.n)
            END AS value
        FROM JSON_TABLE(p_keys, '$[*]' COLUMNS (n int PATH '$.n', name varchar(64) CHARACTER SET utf8mb4 PATH '$.name',
            quoted varchar(200) CHARACTER SET utf8mb4 PATH '$.quoted')) AS j
        JOIN information_schema.columns AS c ON CAST(j.name AS binary) = CAST(CONVERT(c.column_name USING utf8mb4) AS binary)
        WHERE c.table_schema = v_schema AND c.table_name = v_name
    ) AS k;
END

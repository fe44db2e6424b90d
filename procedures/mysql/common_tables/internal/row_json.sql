-- row_json: the SQL expression that turns a row into JSON, for dynamic SQL.
-- Arguments:   p_columns (from imq_read_columns), p_chosen (a JSON array of {"n", "name"}; NULL: all columns), p_alias
--              (the row's alias in the statement)
-- Returns:     p_json: the expression
--
-- The expression has the same meaning in every SQL mode and time zone of the session.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_row_json(
    IN p_columns longtext CHARACTER SET utf8mb4, IN p_chosen longtext CHARACTER SET utf8mb4,
    IN p_alias varchar(200) CHARACTER SET utf8mb4, OUT p_json longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    SELECT CONCAT('CONCAT(''{''', GROUP_CONCAT(', ', IF(k.head LIKE '%\\\\%', CONCAT('_utf8mb4 0x', HEX(k.head)),
            CONCAT('''', REPLACE(k.head, '''', ''''''), '''')), ', COALESCE(', k.value, ', ''null'')'
            ORDER BY k.n SEPARATOR ''), ', ''}'')')
    INTO p_json
    FROM (
        SELECT v.n, CONCAT(IF(ROW_NUMBER() OVER (ORDER BY v.n) = 1, '', ','), JSON_QUOTE(v.column_name), ':') AS head,
            CASE
                WHEN v.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'year', 'double', 'json')
                    THEN CONCAT('CONVERT(', v.quoted, ' USING utf8mb4)')
                -- As a double, because the server writes a float with only six digits.
                WHEN v.data_type = 'float' THEN CONCAT('CONVERT(', v.quoted, ' + 0e0 USING utf8mb4)')
                WHEN v.data_type = 'bit' THEN CONCAT('CONVERT(', v.quoted, ' + 0 USING utf8mb4)')
                WHEN v.data_type IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob', 'vector')
                    THEN CONCAT('CONCAT(''"'', CONVERT(REPLACE(TO_BASE64(', v.quoted, '), CHAR(10), '''') USING utf8mb4), ''"'')')
                WHEN v.data_type = 'datetime'
                    THEN CONCAT('CONCAT(''"'', REPLACE(CONVERT(', v.quoted, ' USING utf8mb4), '' '', ''T''), ''"'')')
                -- In UTC: in most time zones one hour of the year occurs twice.
                WHEN v.data_type = 'timestamp' THEN CONCAT('CONCAT(''"'', REPLACE(LEFT(CONVERT('
                    'CAST(''1970-01-01'' AS datetime(6)) + INTERVAL UNIX_TIMESTAMP(', v.quoted, ') SECOND USING utf8mb4), ',
                    19 + v.datetime_precision + (v.datetime_precision > 0), '), '' '', ''T''), ''+00:00"'')')
                WHEN v.data_type IN ('geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring',
                    'multipolygon', 'geometrycollection', 'geomcollection')
                    THEN CONCAT('JSON_QUOTE(CONVERT(ST_AsText(', v.quoted, ') USING utf8mb4))')
                ELSE CONCAT('JSON_QUOTE(CONVERT(', v.quoted, ' USING utf8mb4))')
            END AS value
        FROM (
            SELECT COALESCE(j.n, c.n) AS n, c.column_name, c.data_type, c.datetime_precision,
                CONCAT('`', REPLACE(p_alias, '`', '``'), '`.`', REPLACE(c.column_name, '`', '``'), '`') AS quoted
            FROM JSON_TABLE(p_columns, '$[*]' COLUMNS (n int PATH '$.n',
                column_name varchar(64) CHARACTER SET utf8mb4 PATH '$.name',
                data_type varchar(40) CHARACTER SET utf8mb4 PATH '$.kind', datetime_precision int PATH '$.scale')) AS c
            LEFT JOIN JSON_TABLE(COALESCE(p_chosen, '[]'), '$[*]' COLUMNS (n int PATH '$.n',
                name varchar(64) CHARACTER SET utf8mb4 PATH '$.name')) AS j
                ON CAST(j.name AS binary) = CAST(c.column_name AS binary)
            WHERE p_chosen IS NULL OR j.n IS NOT NULL
        ) AS v
    ) AS k;
END

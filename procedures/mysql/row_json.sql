-- row_json: the expression that makes a JSON text of a row, for dynamic SQL.
-- Arguments:   p_table (the table as mq_find_table has quoted it), p_columns (what mq_find_columns has found; NULL: all
--              columns), p_alias (the row's name in the statement)
-- Returns:     p_json: the expression; NULL when there is no such table
-- Errors:      none
-- Transaction: reads the catalog only
-- Example:     CALL mq_row_json('`shop`.`orders`', NULL, 't', v_json);
--
-- The text of the expression means the same whatever the session's SQL mode and time zone are.

DROP PROCEDURE IF EXISTS mq_row_json;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_row_json(
    IN p_table longtext CHARACTER SET utf8mb4,
    IN p_columns longtext CHARACTER SET utf8mb4,
    IN p_alias varchar(200) CHARACTER SET utf8mb4,
    OUT p_json longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_table longtext CHARACTER SET utf8mb4;
    DECLARE v_schema, v_name varchar(200) CHARACTER SET utf8mb4;
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    CALL mq_split_names('table', p_table, '.', 2, v_table);
    SET v_schema = JSON_UNQUOTE(JSON_EXTRACT(v_table, '$[0]')), v_name = JSON_UNQUOTE(JSON_EXTRACT(v_table, '$[1]'));
    SELECT CONCAT('CONCAT(''{''', GROUP_CONCAT(', ', IF(k.head LIKE '%\\\\%', CONCAT('_utf8mb4 0x', HEX(k.head)),
            CONCAT('''', REPLACE(k.head, '''', ''''''), '''')), ', COALESCE(', k.value, ', ''null'')'
            ORDER BY k.n SEPARATOR ''), ', ''}'')')
    INTO p_json
    FROM (
        SELECT v.n, CONCAT(IF(ROW_NUMBER() OVER (ORDER BY v.n) = 1, '', ','), JSON_QUOTE(v.column_name), ':') AS head,
            CASE
                WHEN v.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'year', 'double', 'json')
                    THEN CONCAT('CONVERT(', v.quoted, ' USING utf8mb4)')
                -- As a double: the server writes a float with six digits.
                WHEN v.data_type = 'float' THEN CONCAT('CONVERT(', v.quoted, ' + 0e0 USING utf8mb4)')
                WHEN v.data_type = 'bit' THEN CONCAT('CONVERT(', v.quoted, ' + 0 USING utf8mb4)')
                WHEN v.data_type IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob', 'vector')
                    THEN CONCAT('CONCAT(''"'', REPLACE(TO_BASE64(', v.quoted, '), CHAR(10), ''''), ''"'')')
                WHEN v.data_type = 'datetime'
                    THEN CONCAT('CONCAT(''"'', REPLACE(CONVERT(', v.quoted, ' USING utf8mb4), '' '', ''T''), ''"'')')
                -- Without the session's time zone, in which an hour a year means two.
                WHEN v.data_type = 'timestamp' THEN CONCAT('CONCAT(''"'', REPLACE(LEFT(CONVERT('
                    'CAST(''1970-01-01'' AS datetime(6)) + INTERVAL UNIX_TIMESTAMP(', v.quoted, ') SECOND USING utf8mb4), ',
                    19 + v.datetime_precision + (v.datetime_precision > 0), '), '' '', ''T''), ''+00:00"'')')
                WHEN v.data_type IN ('geometry', 'point', 'linestring', 'polygon', 'multipoint', 'multilinestring',
                    'multipolygon', 'geometrycollection', 'geomcollection')
                    THEN CONCAT('JSON_QUOTE(CONVERT(ST_AsText(', v.quoted, ') USING utf8mb4))')
                ELSE CONCAT('JSON_QUOTE(CONVERT(', v.quoted, ' USING utf8mb4))')
            END AS value
        FROM (
            SELECT COALESCE(j.n, c.ordinal_position) AS n, CONVERT(c.column_name USING utf8mb4) AS column_name, c.data_type,
                c.datetime_precision,
                CONCAT('`', REPLACE(p_alias, '`', '``'), '`.`', REPLACE(c.column_name, '`', '``'), '`') AS quoted
            FROM information_schema.columns AS c
            LEFT JOIN JSON_TABLE(COALESCE(p_columns, '[]'), '$[*]' COLUMNS (
                n int PATH '$.n', name varchar(200) CHARACTER SET utf8mb4 PATH '$.name'
            )) AS j ON CAST(j.name AS binary) = CAST(CONVERT(c.column_name USING utf8mb4) AS binary)
            WHERE c.table_schema = v_schema AND c.table_name = v_name AND (p_columns IS NULL OR j.n IS NOT NULL)
        ) AS v
    ) AS k;
END//

DELIMITER ;

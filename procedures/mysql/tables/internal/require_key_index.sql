-- require_key_index: refuse key columns that do not hold a primary key or a unique index of NOT NULL columns.
-- Arguments:   p_schema, p_table (names as the catalog has them), p_label (the table, for people), p_keys (a JSON array of names)
-- Returns:     p_index: the primary key, or else the first such index
-- Errors:      50006 unsuitable_table
-- Transaction: reads the catalog
-- Example:     CALL mq_require_key_index('shop', 'orders', 'shop.orders', '["id"]', v_index);

DROP PROCEDURE IF EXISTS mq_require_key_index;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_require_key_index(
    IN p_schema varchar(200) CHARACTER SET utf8mb4,
    IN p_table varchar(200) CHARACTER SET utf8mb4,
    IN p_label varchar(200) CHARACTER SET utf8mb4,
    IN p_keys longtext CHARACTER SET utf8mb4,
    OUT p_index varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    SELECT k.index_name INTO p_index
    FROM (
        SELECT s.index_name, MAX(s.non_unique) AS non_unique,
            MAX(s.nullable = 'YES' OR j.name IS NULL OR s.sub_part IS NOT NULL) AS bad
        FROM information_schema.statistics AS s
        LEFT JOIN JSON_TABLE(p_keys, '$[*]' COLUMNS (name varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS j
            ON CONVERT(s.column_name USING utf8mb4) = CONVERT(j.name USING utf8mb4) COLLATE utf8mb4_general_ci
        WHERE s.table_schema = p_schema AND s.table_name = p_table
        GROUP BY s.index_name
        HAVING non_unique = 0 AND bad = 0
    ) AS k
    ORDER BY k.index_name <> 'PRIMARY', k.index_name LIMIT 1;
    IF p_index IS NULL THEN
        CALL mq_raise_error('unsuitable_table', CONCAT('key_columns: ', p_label,
            ' has no primary key or unique index of NOT NULL columns within'));
    END IF;
END//

DELIMITER ;

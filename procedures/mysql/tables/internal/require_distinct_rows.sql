-- require_distinct_rows: refuse a table whose rows cannot be distinguished.
-- Arguments:   p_schema, p_table (names as in the catalog), p_label (the table's name in errors), p_keys (a JSON array of
--              names; NULL: all columns except p_status), p_status, p_equal_rows (1: accept equal rows)
-- Returns:     p_index: the primary key, or a unique index of NOT NULL columns within p_keys

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_distinct_rows(
    IN p_schema varchar(200) CHARACTER SET utf8mb4, IN p_table varchar(200) CHARACTER SET utf8mb4,
    IN p_label varchar(200) CHARACTER SET utf8mb4, IN p_keys longtext CHARACTER SET utf8mb4,
    IN p_status varchar(200) CHARACTER SET utf8mb4, IN p_equal_rows tinyint,
    OUT p_index varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_bad varchar(200) CHARACTER SET utf8mb4;
    SELECT k.index_name INTO p_index
    FROM (
        SELECT s.index_name, MAX(s.non_unique) AS non_unique,
            MAX(s.nullable = 'YES' OR j.name IS NULL OR s.sub_part IS NOT NULL) AS bad
        FROM information_schema.statistics AS s
        LEFT JOIN JSON_TABLE(COALESCE(p_keys, '[]'), '$[*]' COLUMNS (name varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS j
            ON CONVERT(s.column_name USING utf8mb4) = CONVERT(j.name USING utf8mb4) COLLATE utf8mb4_general_ci
        WHERE s.table_schema = p_schema AND s.table_name = p_table
        GROUP BY s.index_name
        HAVING non_unique = 0 AND bad = 0
    ) AS k
    ORDER BY k.index_name <> 'PRIMARY', k.index_name LIMIT 1;
    IF p_keys IS NOT NULL AND p_index IS NULL THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('key_columns: must include all columns of the primary key',
            ', or of a unique index of NOT NULL columns'));
    ELSEIF p_keys IS NULL AND NOT p_equal_rows THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('equal rows of ', p_label,
            ' cannot be distinguished: give key_columns, or equal_rows 1'));
    ELSEIF p_keys IS NULL THEN
        CALL imq_column_without_equality(p_schema, p_table, p_status, v_bad);
        IF v_bad IS NOT NULL THEN
            CALL imq_raise_error('unsuitable_table', CONCAT('key_columns: needed, because ', LEFT(v_bad, 40),
                ' cannot be compared'));
        END IF;
    END IF;
END

-- find_columns: the columns that an argument names.
-- Arguments:   p_argument (its name in the contract), p_table (the table, quoted by imq_find_table), p_columns (names as
--              written in SQL, separated by commas)
-- Returns:     p_found: a JSON array of {"n": 1, "name": ..., "quoted": for SQL, "type": ..., "nullable": 0 or 1}, in the
--              order of the argument

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_find_columns(
    IN p_argument varchar(200) CHARACTER SET utf8mb4, IN p_table longtext CHARACTER SET utf8mb4,
    IN p_columns longtext CHARACTER SET utf8mb4, OUT p_found longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_names, v_table longtext CHARACTER SET utf8mb4;
    -- In the catalog's character set: with another one the server would read the whole catalog.
    DECLARE v_schema, v_name varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci;
    DECLARE v_bad varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_distinct int;
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    CALL imq_split_names(p_argument, p_columns, ',', 100, v_names);
    CALL imq_split_names(p_argument, p_table, '.', 2, v_table);
    SET v_schema = JSON_UNQUOTE(JSON_EXTRACT(v_table, '$[0]')), v_name = JSON_UNQUOTE(JSON_EXTRACT(v_table, '$[1]'));
    SELECT CONCAT('[', GROUP_CONCAT('{"n":', j.n, ',"name":', JSON_QUOTE(c.column_name), ',"quoted":',
            JSON_QUOTE(CONCAT('`', REPLACE(c.column_name, '`', '``'), '`')), ',"type":',
            JSON_QUOTE(CONVERT(c.column_type USING utf8mb4)), ',"nullable":', IF(c.is_nullable = 'YES', 1, 0), '}'
            ORDER BY j.n), ']'),
        MIN(IF(c.column_name IS NULL, j.name, NULL)), COUNT(DISTINCT c.ordinal_position)
    INTO p_found, v_bad, v_distinct
    FROM JSON_TABLE(v_names, '$[*]' COLUMNS (n FOR ORDINALITY, name varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS j
    LEFT JOIN information_schema.columns AS c ON c.table_schema = v_schema AND c.table_name = v_name
        AND CONVERT(c.column_name USING utf8mb4) = CONVERT(j.name USING utf8mb4) COLLATE utf8mb4_general_ci;
    IF v_bad IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', CONCAT(p_argument, ': the table has no column ', LEFT(v_bad, 60)));
    ELSEIF v_distinct < JSON_LENGTH(v_names) THEN
        CALL imq_raise_error('invalid_argument', CONCAT(p_argument, ': names a column twice'));
    END IF;
END

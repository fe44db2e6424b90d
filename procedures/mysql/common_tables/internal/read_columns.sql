-- read_columns: the columns of a user's table, as far as the caller can see them.
-- Returns:     p_columns: a JSON array of {"n", "name", "kind" (the type without length), "scale", "computed" (0 or 1), "class"},
--              in the table's order
--
-- The classes: n number, u timestamp, d date or time, x bytes, t text.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_read_columns(
    IN p_schema varchar(200) CHARACTER SET utf8mb4, IN p_table varchar(200) CHARACTER SET utf8mb4,
    OUT p_columns longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    -- In the catalog's character set: with another one the server would read the whole catalog.
    DECLARE v_schema varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT p_schema;
    DECLARE v_table varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT p_table;
    DECLARE v_quoted longtext CHARACTER SET utf8mb4;
    DECLARE v_count bigint;
    DECLARE v_views int;
    IF @@SESSION.group_concat_max_len < 1073741824 THEN
        SET SESSION group_concat_max_len = 1073741824;
    END IF;
    SELECT CONCAT('[', GROUP_CONCAT('{"n":', c.ordinal_position, ',"name":', JSON_QUOTE(CONVERT(c.column_name USING utf8mb4)),
        ',"kind":"', c.data_type, '","scale":', COALESCE(c.datetime_precision, c.numeric_scale, 0),
        ',"computed":', IF(COALESCE(c.generation_expression, '') = '', 0, 1), ',"class":"', CASE
            WHEN c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'year', 'double', 'float',
                'bit') THEN 'n'
            WHEN c.data_type IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob') THEN 'x'
            WHEN c.data_type IN ('date', 'datetime', 'time') THEN 'd'
            WHEN c.data_type = 'timestamp' THEN 'u'
            ELSE 't'
        END, '"}' ORDER BY c.ordinal_position), ']')
    INTO p_columns
    FROM information_schema.columns AS c
    WHERE c.table_schema = v_schema AND c.table_name = v_table
        -- MariaDB's catalog compares names case-insensitively even where the names themselves are case-sensitive.
        AND (@@lower_case_table_names > 0
            OR CAST(c.table_schema AS binary) = CAST(p_schema AS binary)
            AND CAST(c.table_name AS binary) = CAST(p_table AS binary));
    SET v_quoted = CONCAT('`', REPLACE(p_schema, '`', '``'), '`.`', REPLACE(p_table, '`', '``'), '`');
    -- A view can run functions of its owner with the rights of the caller.
    SELECT COUNT(*) INTO v_views
    FROM information_schema.tables AS t
    WHERE t.table_schema = v_schema AND t.table_name = v_table AND t.table_type NOT IN ('BASE TABLE', 'SYSTEM VERSIONED')
        AND (@@lower_case_table_names > 0
            OR CAST(t.table_schema AS binary) = CAST(p_schema AS binary)
            AND CAST(t.table_name AS binary) = CAST(p_table AS binary));
    IF v_views > 0 THEN
        CALL imq_raise_error('unsuitable_table', CONCAT(LEFT(v_quoted, 60), ' is a view'));
    ELSEIF p_columns IS NULL THEN
        BEGIN
            DECLARE EXIT HANDLER FOR 1044, 1142, 1143
                CALL imq_raise_error('unsuitable_table', CONCAT('GRANT SELECT ON ', LEFT(v_quoted, 60), ' TO ', CURRENT_USER()));
            DECLARE EXIT HANDLER FOR 1049, 1146
                CALL imq_raise_error('not_found', CONCAT('table: ', LEFT(v_quoted, 60), ' no longer exists'));
            CALL imq_run(CONCAT('SELECT 1 INTO @mq_found FROM ', v_quoted, ' LIMIT 0'), v_count);
        END;
        CALL imq_raise_error('not_found', CONCAT('table: ', LEFT(v_quoted, 60), ' no longer exists'));
    END IF;
END

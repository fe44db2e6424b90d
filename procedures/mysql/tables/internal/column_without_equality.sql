-- column_without_equality: find a column of a table whose values cannot be compared reliably.
-- Arguments:   p_schema, p_table (names as in the catalog), p_but (a column to ignore, or NULL)
-- Returns:     p_column; NULL when there is none

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_column_without_equality(
    IN p_schema varchar(200) CHARACTER SET utf8mb4, IN p_table varchar(200) CHARACTER SET utf8mb4,
    IN p_but varchar(200) CHARACTER SET utf8mb4, OUT p_column varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    SELECT MIN(c.column_name) INTO p_column
    FROM information_schema.columns AS c
    WHERE c.table_schema = p_schema AND c.table_name = p_table
        AND NOT CONVERT(c.column_name USING utf8mb4) <=> p_but COLLATE utf8mb4_general_ci
        AND c.data_type NOT IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'year', 'bit', 'char', 'varchar',
            'tinytext', 'text', 'enum', 'set', 'binary', 'varbinary', 'date', 'datetime', 'timestamp', 'time', 'uuid',
                'inet4', 'inet6');
END

-- require_index: refuse a table without an index that begins with the given columns.
-- Arguments:   p_schema, p_table (names as in the catalog), p_columns (quoted, separated by commas)
-- Returns:     p_index: the shortest such index

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_require_index(
    IN p_schema varchar(200) CHARACTER SET utf8mb4, IN p_table varchar(200) CHARACTER SET utf8mb4,
    IN p_columns longtext CHARACTER SET utf8mb4, OUT p_index varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    -- A secondary index ends with the primary key columns.
    SELECT i.index_name INTO p_index
    FROM (
        SELECT s.index_name, CONCAT(GROUP_CONCAT('`', REPLACE(s.column_name, '`', '``'),
            '`' ORDER BY s.seq_in_index SEPARATOR ', '),
                IF(s.index_name = 'PRIMARY', '', COALESCE(CONCAT(', ', MAX(p.columns_)), ''))) AS columns_,
            MAX(s.sub_part IS NOT NULL OR COALESCE(s.collation, '') <> 'A') AS bad
        FROM information_schema.statistics AS s
        LEFT JOIN (
            SELECT GROUP_CONCAT('`', REPLACE(column_name, '`', '``'), '`' ORDER BY seq_in_index SEPARATOR ', ') AS columns_
            FROM information_schema.statistics
            WHERE table_schema = p_schema AND table_name = p_table AND index_name = 'PRIMARY'
        ) AS p ON TRUE
        WHERE s.table_schema = p_schema AND s.table_name = p_table AND s.index_type = 'BTREE'
        GROUP BY s.index_name
    ) AS i
    WHERE i.bad = 0 AND LEFT(CONCAT(i.columns_, ', '), CHAR_LENGTH(p_columns) + 2) = CONCAT(p_columns, ', ')
    ORDER BY CHAR_LENGTH(i.columns_), i.index_name LIMIT 1;
    IF p_index IS NULL THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('needs: CREATE INDEX mq_claim ON `', REPLACE(p_schema, '`', '``'), '`.`',
            REPLACE(p_table, '`', '``'), '` (', p_columns, ')'));
    END IF;
END

-- has_key: whether columns include a primary key or a unique index of NOT NULL columns.
-- Arguments:   p_table (its name from find_table), p_columns (quoted, separated by commas)
-- Returns:     1 or 0
CREATE OR ALTER FUNCTION imq_has_key (p_table varchar(63) CHARACTER SET UTF8, p_columns mq_text)
RETURNS smallint
AS
BEGIN
    RETURN IIF(EXISTS (
        SELECT *
        FROM rdb$indices AS i
        WHERE i.rdb$relation_name = :p_table AND i.rdb$unique_flag = 1 AND COALESCE(i.rdb$index_inactive, 0) = 0
            AND i.rdb$expression_blr IS NULL /*!5 AND i.rdb$condition_blr IS NULL */
            AND NOT EXISTS (
                SELECT *
                FROM rdb$index_segments AS s
                JOIN rdb$relation_fields AS r ON r.rdb$relation_name = i.rdb$relation_name AND r.rdb$field_name = s.rdb$field_name
                JOIN rdb$fields AS f ON f.rdb$field_name = r.rdb$field_source
                WHERE s.rdb$index_name = i.rdb$index_name
                    AND (COALESCE(r.rdb$null_flag, f.rdb$null_flag, 0) = 0
                        OR POSITION(',"' || REPLACE(TRIM(s.rdb$field_name), '"', '""') || '",' IN ',' || :p_columns || ',') = 0)
            )
    ), 1, 0);
END

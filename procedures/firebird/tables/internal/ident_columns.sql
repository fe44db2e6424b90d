-- ident_columns: return the columns that identify a row without a key: all but the status and computed columns.
-- Arguments:   p_table (as find_table returns it), p_status (as in the catalog, or NULL)
-- Returns:     the names, quoted and separated by commas
CREATE OR ALTER FUNCTION imq_ident_columns (
    p_table varchar(63) CHARACTER SET UTF8, p_status varchar(63) CHARACTER SET UTF8
)
RETURNS mq_text
AS
BEGIN
    RETURN (
        SELECT LIST('"' || REPLACE(TRIM(c.name), '"', '""') || '"')
        FROM (
            SELECT r.rdb$field_name AS name
            FROM rdb$relation_fields AS r
            JOIN rdb$fields AS f ON f.rdb$field_name = r.rdb$field_source
            WHERE r.rdb$relation_name = :p_table AND r.rdb$field_name IS DISTINCT FROM :p_status AND f.rdb$computed_blr IS NULL
            ORDER BY r.rdb$field_position
        ) AS c
    );
END

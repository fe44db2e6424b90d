-- is_sync_column: whether a table still has the sync column of its feed.
-- Arguments:   p_table, p_column (names as in the catalog)
-- Returns:     1; 0: there is no such column, or it is computed or has another type than bigint
--
-- A computed column is a program of the table's owner.
CREATE OR ALTER FUNCTION imq_is_sync_column (
    p_table varchar(63) CHARACTER SET UTF8, p_column varchar(63) CHARACTER SET UTF8
)
RETURNS smallint
AS
BEGIN
    RETURN IIF(EXISTS (
        SELECT 1
        FROM rdb$relation_fields AS r
        JOIN rdb$fields AS f ON f.rdb$field_name = r.rdb$field_source
        WHERE r.rdb$relation_name = :p_table AND r.rdb$field_name = :p_column AND f.rdb$computed_blr IS NULL
            AND f.rdb$field_type = 16
    ), 1, 0);
END

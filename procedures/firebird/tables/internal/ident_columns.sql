-- ident_columns: the columns that identify a row without a key: all but the status and what is computed.
-- Arguments:   p_table (as find_table returns its name), p_status (as the catalog has it, or NULL)
-- Returns:     their names in quotes, with commas between them
-- Errors:      none
-- Transaction: reads the catalog only
-- Example:     SELECT mq_ident_columns('EVENTS', NULL) FROM rdb$database;

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_ident_columns (
    p_table varchar(63) CHARACTER SET UTF8,
    p_status varchar(63) CHARACTER SET UTF8
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
END^

SET TERM ; ^

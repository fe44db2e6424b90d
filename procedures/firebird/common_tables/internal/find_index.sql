-- find_index: an index of a table that begins with these columns, in this order and ascending.
-- Arguments:   p_table (its name from find_table), p_columns (quoted, separated by commas; NULL: no index is needed)
-- Returns:     its name, quoted; NULL when there is none
CREATE OR ALTER FUNCTION imq_find_index (p_table varchar(63) CHARACTER SET UTF8, p_columns mq_text)
RETURNS varchar(130) CHARACTER SET UTF8
AS
DECLARE v_index varchar(63) CHARACTER SET UTF8;
DECLARE v_columns mq_text;
BEGIN
    -- Excluded: a partial index, which holds only some rows, and an expression index, which has no column segments.
    FOR SELECT i.rdb$index_name FROM rdb$indices AS i
        WHERE i.rdb$relation_name = :p_table AND COALESCE(i.rdb$index_inactive, 0) = 0 AND COALESCE(i.rdb$index_type, 0) = 0
            AND i.rdb$expression_blr IS NULL /*!5 AND i.rdb$condition_blr IS NULL */
        ORDER BY i.rdb$segment_count, i.rdb$index_id
        INTO v_index
    DO
    BEGIN
        SELECT LIST('"' || REPLACE(TRIM(s.rdb$field_name), '"', '""') || '"')
        FROM (
            SELECT rdb$field_name FROM rdb$index_segments WHERE rdb$index_name = :v_index ORDER BY rdb$field_position
        ) AS s
        INTO v_columns;
        IF (v_columns || ',' STARTING WITH p_columns || ',') THEN
            RETURN '"' || REPLACE(TRIM(v_index), '"', '""') || '"';
    END
    RETURN NULL;
END

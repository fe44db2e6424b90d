-- require_distinct_rows: refuse a table whose rows cannot be distinguished.
-- Arguments:   p_table (as find_table returns it), p_keys (quoted, separated by commas; NULL: all columns except the
--              status), p_ident (the columns that identify a row, quoted, separated by commas), p_equal_rows (1: accept
--              equal rows)
CREATE OR ALTER PROCEDURE imq_require_distinct_rows (
    p_table varchar(63) CHARACTER SET UTF8, p_keys mq_text, p_ident mq_text, p_equal_rows smallint
)
AS
-- The size of mq_ident in bytes, minus room for the lengths of the values.
DECLARE c_most integer = 15000;
DECLARE v_bad varchar(63) CHARACTER SET UTF8;
DECLARE v_bytes bigint;
BEGIN
    IF (p_keys IS NULL AND p_equal_rows = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', 'equal rows of ' || p_table
            || ' cannot be distinguished: give key_columns, or equal_rows 1 to accept this');
    SELECT MIN(IIF(kind IN (10, 27) OR as_text IS NULL, name, NULL)), SUM(bytes + 7)
    FROM imq_columns_as_text('key_columns', :p_table, :p_ident)
    INTO v_bad, v_bytes;
    IF (v_bad IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table',
            TRIM(IIF(p_keys IS NULL, 'key_columns: needed, because', 'key_columns:')) || ' ' || v_bad || ' of '
            || p_table || ' cannot be compared: a BLOB, an array or a floating point number has no exact equality');
    IF (v_bytes > c_most) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', 'the columns that identify a row of ' || p_table || ' can have '
            || v_bytes || ' bytes; the limit is 15,000'
            || TRIM(TRAILING FROM IIF(p_keys IS NULL, ': give key_columns', '')));
    IF (p_keys IS NOT NULL AND imq_has_key(p_table, p_keys) = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table',
            'key_columns: must include all columns of the primary key of ' || p_table
                || ', or of a unique index of NOT NULL columns');
END

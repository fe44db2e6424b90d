-- find_columns: the columns that an argument names.
-- Arguments:   p_argument (its name in the contract), p_table (its name from find_table), p_list (names as written in
--              SQL, separated by commas; NULL: all columns)
-- Returns:     n (from 1), name (as in the catalog), quoted (for SQL), type (for a CAST; NULL: not possible, as for an
--              array), nullable (1 or 0), kind (RDB$FIELD_TYPE), charset (of texts, RDB$CHARACTER_SET_ID), room (length:
--              of texts in characters, else in bytes), is_text (1: a text BLOB)
CREATE OR ALTER PROCEDURE imq_find_columns (
    p_argument varchar(30) CHARACTER SET ASCII, p_table varchar(63) CHARACTER SET UTF8, p_list mq_text
)
RETURNS (
    n integer, name varchar(63) CHARACTER SET UTF8, quoted varchar(130) CHARACTER SET UTF8,
    type varchar(120) CHARACTER SET UTF8, nullable smallint, kind smallint, charset smallint, room integer,
    is_text smallint
)
AS
DECLARE v_list mq_text; DECLARE v_seen mq_text;
DECLARE v_name mq_name;
DECLARE v_sub_type smallint; DECLARE v_precision smallint; DECLARE v_scale smallint; DECLARE v_dimensions smallint;
DECLARE v_charset_name varchar(63) CHARACTER SET UTF8;
BEGIN
    v_list = COALESCE(p_list, (
        SELECT LIST('"' || REPLACE(TRIM(c.name), '"', '""') || '"')
        FROM (
            SELECT rdb$field_name AS name FROM rdb$relation_fields WHERE rdb$relation_name = :p_table
            ORDER BY rdb$field_position
        ) AS c
    ));
    v_seen = ',';
    FOR SELECT n, name FROM imq_split_names(:p_argument, :v_list) INTO n, v_name DO
    BEGIN
        name = NULL;
        IF (CHAR_LENGTH(v_name) <= 63) THEN
            SELECT TRIM(r.rdb$field_name), IIF(COALESCE(r.rdb$null_flag, f.rdb$null_flag, 0) = 1, 0, 1), f.rdb$field_type,
                f.rdb$field_sub_type, f.rdb$field_precision, COALESCE(f.rdb$field_scale, 0), f.rdb$dimensions,
                f.rdb$character_set_id, COALESCE(f.rdb$character_length, f.rdb$field_length), TRIM(s.rdb$character_set_name)
            FROM rdb$relation_fields AS r
            JOIN rdb$fields AS f ON f.rdb$field_name = r.rdb$field_source
            LEFT JOIN rdb$character_sets AS s ON s.rdb$character_set_id = f.rdb$character_set_id
            WHERE r.rdb$relation_name = :p_table AND r.rdb$field_name = :v_name
            INTO name, nullable, kind, v_sub_type, v_precision, v_scale, v_dimensions, charset, room, v_charset_name;
        IF (name IS NULL) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': the table has no column ' || v_name);
        quoted = '"' || REPLACE(name, '"', '""') || '"';
        IF (POSITION(',' || quoted || ',', v_seen) > 0) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': names column ' || name || ' twice');
        v_seen = v_seen || quoted || ',';
        is_text = IIF(kind = 261 AND v_sub_type = 1, 1, 0);
        type = TRIM(CASE
            WHEN v_dimensions > 0 THEN NULL
            WHEN kind IN (7, 8, 16, 26) AND (v_scale < 0 OR v_sub_type > 0) THEN
                IIF(v_sub_type = 2, 'DECIMAL({"precision"}, {"scale"})', 'NUMERIC({"precision"}, {"scale"})')
            WHEN kind = 7 THEN 'SMALLINT'
            WHEN kind = 8 THEN 'INTEGER'
            WHEN kind = 10 THEN 'FLOAT'
            WHEN kind = 12 THEN 'DATE'
            WHEN kind = 13 THEN 'TIME'
            WHEN kind = 14 THEN 'CHAR({"room"}) CHARACTER SET {"charset"}'
            WHEN kind = 16 THEN 'BIGINT'
            WHEN kind = 23 THEN 'BOOLEAN'
            WHEN kind = 24 THEN 'DECFLOAT(16)'
            WHEN kind = 25 THEN 'DECFLOAT(34)'
            WHEN kind = 26 THEN 'INT128'
            WHEN kind = 27 THEN 'DOUBLE PRECISION'
            WHEN kind = 28 THEN 'TIME WITH TIME ZONE'
            WHEN kind = 29 THEN 'TIMESTAMP WITH TIME ZONE'
            WHEN kind = 35 THEN 'TIMESTAMP'
            WHEN kind = 37 THEN 'VARCHAR({"room"}) CHARACTER SET {"charset"}'
            WHEN is_text = 1 THEN 'BLOB SUB_TYPE TEXT CHARACTER SET {"charset"}'
            WHEN kind = 261 THEN 'BLOB SUB_TYPE {"sub_type"}'
        END);
        IF (kind IN (7, 8, 16, 26)) THEN
            type = REPLACE(REPLACE(type, '{"precision"}', COALESCE(NULLIF(v_precision, 0), CASE kind WHEN 7 THEN 4 WHEN 8 THEN 9
                WHEN 16 THEN 18 ELSE 38 END)), '{"scale"}', ABS(v_scale));
        ELSE IF (v_charset_name IS NOT NULL) THEN
            type = REPLACE(REPLACE(type, '{"room"}', room), '{"charset"}', v_charset_name);
        ELSE IF (kind = 261) THEN
            type = REPLACE(type, '{"sub_type"}', v_sub_type);
        SUSPEND;
    END
END

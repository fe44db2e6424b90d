-- row_json: the SQL expression that turns a row into JSON, for dynamic SQL.
-- Arguments:   p_table (its name from find_table), p_columns (as for find_columns; NULL: all), p_alias (the table's alias
--              in the statement)
-- Returns:     the expression; its value is a BLOB of UTF-8 bytes, to be assigned to a text
--
-- Texts are concatenated as bytes, with the byte FE as the quotes around them; escape_json does the rest. The result is a
-- VARCHAR while the maximum lengths allow it, which is much faster, and otherwise a BLOB.
CREATE OR ALTER FUNCTION imq_row_json (
    p_table varchar(63) CHARACTER SET UTF8, p_columns mq_text, p_alias varchar(63) CHARACTER SET UTF8
)
RETURNS mq_text
AS
DECLARE c_most integer = 32000;
DECLARE v_n integer; DECLARE v_room integer;
DECLARE v_name varchar(63) CHARACTER SET UTF8;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_type varchar(120) CHARACTER SET UTF8;
DECLARE v_kind smallint; DECLARE v_charset smallint; DECLARE v_is_text smallint;
-- Of the column: its expression, its maximum length in bytes (NULL: a BLOB), and whether it is a text.
DECLARE v_value varchar(2000) CHARACTER SET UTF8;
DECLARE v_bytes integer;
DECLARE v_is_string smallint;
-- The part that is still a VARCHAR, and its maximum length in bytes; v_whole is the part before it.
DECLARE v_part mq_text;
DECLARE v_part_bytes integer = 1;
DECLARE v_whole mq_text;
DECLARE v_brace varchar(30) CHARACTER SET ASCII = ''' || ASCII_CHAR(123) || ''';
BEGIN
    v_part = 'x''7B''';
    FOR SELECT n, name, quoted, type, kind, charset, room, is_text
        FROM imq_find_columns('columns', :p_table, :p_columns)
        INTO v_n, v_name, v_quoted, v_type, v_kind, v_charset, v_room, v_is_text
    DO
    BEGIN
        v_value = TRIM(IIF(UPPER(p_alias) IN ('NEW', 'OLD'), p_alias, '"' || REPLACE(p_alias, '"', '""') || '"'))
            || '.' || v_quoted;
        v_is_string = 0;
        v_bytes = 44;
        IF (v_type IS NULL) THEN
            v_value = 'NULL';
        ELSE IF (v_kind IN (10, 27)) THEN
            v_value = 'imq_number_text(' || v_value || ', ' || IIF(v_kind = 10, 1, 0) || ')';
        ELSE IF (v_kind = 23) THEN
            v_value = 'CAST(LOWER(CAST(' || v_value || ' AS varchar(5))) AS varchar(5) CHARACTER SET OCTETS)';
        ELSE IF (v_kind IN (24, 25)) THEN
        BEGIN
            -- NaN and the infinities are texts. A signalling NaN must not be compared.
            v_value = 'CAST(' || v_value || ' AS varchar(43) CHARACTER SET OCTETS)';
            v_value = 'IIF(RIGHT(' || v_value || ', 1) BETWEEN x''30'' AND x''39'', ' || v_value || ', x''FE'' || ' || v_value
                || ' || x''FE'')';
        END
        ELSE IF (v_kind IN (12, 13, 28, 29, 35)) THEN
        BEGIN
            v_is_string = 1;
            v_value = 'CAST(' || v_value || TRIM(IIF(v_kind IN (28, 29), ' AT TIME ZONE ''UTC''', ''))
                || ' AS varchar(63) CHARACTER SET OCTETS)';
            IF (v_kind IN (28, 29)) THEN
                v_value = 'LEFT(' || v_value || ', ' || IIF(v_kind = 28, 13, 24) || ') || x''2B30303A3030''';
            IF (v_kind IN (29, 35)) THEN
                v_value = 'REPLACE(' || v_value || ', x''20'', x''54'')';
            v_bytes = 72;
        END
        ELSE IF (v_kind = 261 AND v_is_text = 0 OR v_charset = 1) THEN
        BEGIN
            v_is_string = 1;
            v_value = 'imq_base64(' || v_value || ')';
            v_bytes = NULL;
            IF (v_kind <> 261 AND v_room <= 20000) THEN
            BEGIN
                v_bytes = (v_room + 2) / 3 * 4;
                v_value = 'CAST(' || v_value || ' AS varchar(' || v_bytes || ') CHARACTER SET OCTETS)';
            END
        END
        ELSE IF (v_kind IN (14, 37, 261)) THEN
        BEGIN
            v_is_string = 1;
            IF (v_kind = 14) THEN
                v_value = 'TRIM(TRAILING FROM ' || v_value || ')';
            v_bytes = v_room * IIF(v_charset IN (0, 2), IIF(v_charset = 0, 2, 1), 4);
            IF (v_kind = 261 OR v_bytes > c_most) THEN
            BEGIN
                v_bytes = NULL;
                IF (v_charset <> 0) THEN
                    v_value = 'CAST(' || v_value || ' AS blob SUB_TYPE TEXT CHARACTER SET UTF8)';
                v_value = 'CAST(' || v_value || ' AS blob SUB_TYPE TEXT CHARACTER SET OCTETS)';
            END
            ELSE
            BEGIN
                IF (v_charset <> 0) THEN
                    v_value = 'CAST(' || v_value || ' AS varchar(' || v_room || ') CHARACTER SET UTF8)';
                v_value = 'CAST(' || v_value || ' AS varchar(' || v_bytes || ') CHARACTER SET OCTETS)';
            END
            IF (v_charset = 0) THEN
            BEGIN
                v_value = 'imq_utf8_bytes(' || v_value || ')';
                IF (v_bytes IS NOT NULL) THEN
                    v_value = 'CAST(' || v_value || ' AS varchar(' || v_bytes || ') CHARACTER SET OCTETS)';
            END
        END
        ELSE
            v_value = 'CAST(' || v_value || ' AS varchar(44) CHARACTER SET OCTETS)';
        IF (v_is_string = 1) THEN
            v_value = 'x''FE'' || ' || v_value || ' || x''FE''';
        -- ,"name":value. A brace in a name is encoded: it would be read as a placeholder of the enclosing statement.
        v_value = TRIM(IIF(v_n > 1, 'x''2CFE''', 'x''FE''')) || ' || CAST(CAST(''' || REPLACE(REPLACE(v_name, '''', ''''''), '{', v_brace)
            || ''' AS varchar(63) CHARACTER SET UTF8) AS varchar(252) CHARACTER SET OCTETS) || x''FE3A'' || COALESCE(' || v_value
            || ', x''6E756C6C'')';
        v_bytes = v_bytes + 260;
        IF (v_part IS NOT NULL AND (v_bytes IS NULL OR v_part_bytes + v_bytes > c_most)) THEN
        BEGIN
            v_whole = COALESCE(v_whole || ' || ', '') || 'CAST(' || v_part || ' AS blob SUB_TYPE TEXT CHARACTER SET OCTETS)';
            v_part = NULL;
            v_part_bytes = 0;
        END
        IF (v_bytes IS NULL) THEN
            v_whole = v_whole || ' || ' || v_value;
        ELSE
        BEGIN
            v_part = COALESCE(v_part || ' || ', '') || v_value;
            v_part_bytes = v_part_bytes + v_bytes;
        END
    END
    v_part = COALESCE(v_part || ' || ', '') || 'x''7D''';
    RETURN 'imq_escape_json(' || COALESCE(v_whole || ' || ', '') || v_part || ')';
END

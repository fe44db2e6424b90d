-- columns_as_text: return expressions that give the columns of a row r as exact texts, in bytes.
-- Arguments:   p_argument (its name in errors), p_table (as find_table returns it), p_list (column names)
-- Returns:     n (from 1), name, quoted, as_text (NULL: no text reads back as the same value, for example of a BLOB), kind
--              (RDBp_FIELD_TYPE), nullable, bytes (the longest text), type (as find_columns returns it)
CREATE OR ALTER PROCEDURE imq_columns_as_text (
    p_argument varchar(30) CHARACTER SET ASCII, p_table varchar(63) CHARACTER SET UTF8, p_list mq_text
)
RETURNS (
    n integer, name varchar(63) CHARACTER SET UTF8, quoted varchar(130) CHARACTER SET UTF8,
    as_text varchar(400) CHARACTER SET UTF8, kind smallint, nullable smallint, bytes integer,
    type varchar(120) CHARACTER SET UTF8
)
AS
DECLARE v_charset smallint;
DECLARE v_room integer;
BEGIN
    FOR SELECT n, name, quoted, type, nullable, kind, charset, room FROM imq_find_columns(:p_argument, :p_table, :p_list)
        INTO n, name, quoted, type, nullable, kind, v_charset, v_room
    DO
    BEGIN
        bytes = 63;
        as_text = 'r.' || quoted;
        IF (type IS NULL OR kind = 261) THEN
            as_text = NULL;
        ELSE IF (kind IN (10, 27)) THEN
            as_text = 'imq_number_text(' || as_text || ', ' || IIF(kind = 10, 1, 0) || ')';
        ELSE
        BEGIN
            IF (kind IN (14, 37)) THEN
                -- In NONE, OCTETS and ASCII a character has one byte.
                bytes = MINVALUE(32000, v_room * IIF(v_charset IN (0, 1, 2), 1, 4));
            ELSE IF (kind IN (24, 25)) THEN
                as_text = 'NORMALIZE_DECFLOAT(' || as_text || ')';
            ELSE IF (kind IN (28, 29)) THEN
                as_text = as_text || ' AT TIME ZONE ''UTC''';
            as_text = 'CAST(' || as_text || ' AS varchar(' || bytes || ') CHARACTER SET OCTETS)';
        END
        SUSPEND;
    END
END

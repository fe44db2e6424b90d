-- split_names: split a list into names, as the catalog stores them.
-- Arguments:   p_argument (its name in the contract), p_list (names separated by commas)
-- Returns:     n (from 1), name (a plain name in capitals, a name in double quotes unchanged)
CREATE OR ALTER PROCEDURE imq_split_names (p_argument varchar(30) CHARACTER SET ASCII, p_list mq_text)
RETURNS (n integer, name mq_name)
AS
DECLARE v_list varchar(8000) CHARACTER SET UTF8; DECLARE v_name varchar(8000) CHARACTER SET UTF8;
DECLARE v_blanks varchar(4) CHARACTER SET UTF8;
DECLARE v_char varchar(1) CHARACTER SET UTF8;
DECLARE v_length integer;
DECLARE v_at integer = 1;
DECLARE v_end integer;
BEGIN
    IF (p_list IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': must not be NULL');
    IF (CHAR_LENGTH(p_list) > 8000) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': is too long');
    v_list = p_list;
    v_length = CHAR_LENGTH(v_list);
    v_blanks = ' ' || ASCII_CHAR(9) || ASCII_CHAR(10) || ASCII_CHAR(13);
    n = 0;
    WHILE (v_at <= v_length + 1) DO
    BEGIN
        WHILE (v_at <= v_length AND POSITION(SUBSTRING(v_list FROM v_at FOR 1), v_blanks) > 0) DO
            v_at = v_at + 1;
        IF (SUBSTRING(v_list FROM v_at FOR 1) LIKE '"') THEN
        BEGIN
            v_end = POSITION('"', v_list, v_at + 1);
            WHILE (v_end > 0 AND SUBSTRING(v_list FROM v_end + 1 FOR 1) LIKE '"') DO
                v_end = POSITION('"', v_list, v_end + 2);
            IF (v_end = 0) THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': a double quote is not closed');
            v_name = REPLACE(SUBSTRING(v_list FROM v_at + 1 FOR v_end - v_at - 1), '""', '"');
            v_at = v_end + 1;
            WHILE (v_at <= v_length AND POSITION(SUBSTRING(v_list FROM v_at FOR 1), v_blanks) > 0) DO
                v_at = v_at + 1;
        END
        ELSE
        BEGIN
            v_end = POSITION(',', v_list, v_at);
            IF (v_end = 0) THEN
                v_end = v_length + 1;
            v_name = SUBSTRING(v_list FROM v_at FOR v_end - v_at);
            v_at = v_end;
            v_char = RIGHT(v_name, 1);
            WHILE (CHAR_LENGTH(v_char) > 0 AND POSITION(v_char, v_blanks) > 0) DO
            BEGIN
                v_name = LEFT(v_name, CHAR_LENGTH(v_name) - 1);
                v_char = RIGHT(v_name, 1);
            END
            IF (v_name NOT SIMILAR TO '[A-Za-z][A-Za-z0-9_$]*' AND CHAR_LENGTH(v_name) > 0) THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument
                    || ': must be written as in SQL, in double quotes if it is not a plain identifier, not ' || LEFT(v_name, 100));
            v_name = UPPER(v_name);
        END
        IF (CHAR_LENGTH(v_name) NOT BETWEEN 1 AND 200) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument',
                p_argument || ': a name must be 1 to 200 characters, not ' || CHAR_LENGTH(v_name));
        IF (v_at <= v_length AND SUBSTRING(v_list FROM v_at FOR 1) NOT LIKE ',') THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument',
                p_argument || ': only a comma may follow ' || v_name);
        v_at = v_at + 1;
        n = n + 1;
        name = v_name;
        SUSPEND;
    END
END

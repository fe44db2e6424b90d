-- require_headers: refuse headers that are not a JSON object with unique names, from its { to its }.
-- Arguments:   p_headers (NULL: none)
--
-- Firebird has no functions for JSON: this reads character by character. Names are compared as they are written, up to
-- 1,000 characters long; at most 100 levels.
CREATE OR ALTER PROCEDURE imq_require_headers (p_headers mq_text)
AS
DECLARE c_piece integer = 4000;
DECLARE c_blanks varchar(4) CHARACTER SET UTF8;
DECLARE v_length integer;
DECLARE v_at integer = 0;
DECLARE v_piece varchar(4000) CHARACTER SET UTF8;
DECLARE v_char varchar(1) CHARACTER SET UTF8;
-- What may follow. {: the object; n: a name or the end; N: a name; colon; V: a value; v: a value or the end of an array;
-- comma: a comma or an end; empty: nothing.
DECLARE v_next varchar(1) CHARACTER SET UTF8 = '{';
-- The open objects and arrays.
DECLARE v_open varchar(101) CHARACTER SET UTF8 = '';
-- 0: outside a string; 1: inside; 2: after its backslash; 3 to 6: one to four hexadecimal digits are missing.
DECLARE v_string smallint = 0;
DECLARE v_word varchar(1002) CHARACTER SET UTF8 = '';
DECLARE v_names mq_text = '';
DECLARE v_wrong smallint = 0;
BEGIN
    c_blanks = ' ' || ASCII_CHAR(9) || ASCII_CHAR(10) || ASCII_CHAR(13);
    v_length = COALESCE(CHAR_LENGTH(p_headers), 0);
    IF (p_headers IS NULL) THEN
        v_next = '';
    WHILE (v_at < v_length AND v_wrong = 0) DO
    BEGIN
        IF (MOD(v_at, c_piece) = 0) THEN
            v_piece = SUBSTRING(p_headers FROM v_at + 1 FOR c_piece);
        v_char = SUBSTRING(v_piece FROM MOD(v_at, c_piece) + 1 FOR 1);
        v_at = v_at + 1;
        IF (v_string = 1 AND v_char = '"') THEN
        BEGIN
            v_string = 0;
            IF (v_next IN ('n', 'N')) THEN
            BEGIN
                IF (v_open = '{') THEN
                BEGIN
                    v_wrong = IIF(POSITION(',"' || v_word || '"', v_names) > 0, 1, 0);
                    v_names = v_names || ',"' || v_word || '"';
                END
                v_next = ':';
            END
            ELSE
                v_next = ',';
            v_word = '';
        END
        ELSE IF (v_string > 0) THEN
        BEGIN
            IF (v_char < ' ') THEN
                v_wrong = 1;
            ELSE IF (v_string = 1) THEN
                v_string = IIF(v_char = '\', 2, 1);
            ELSE IF (v_string = 2) THEN
            BEGIN
                v_wrong = IIF(POSITION(v_char, '"\/bfnrtu') = 0, 1, 0);
                v_string = IIF(v_char = 'u', 6, 1);
            END
            ELSE
            BEGIN
                v_wrong = IIF(POSITION(UPPER(v_char), '0123456789ABCDEF') = 0, 1, 0);
                v_string = IIF(v_string = 3, 1, v_string - 1);
            END
            IF (v_open = '{' AND v_next IN ('n', 'N')) THEN
            BEGIN
                IF (CHAR_LENGTH(v_word) = 1000) THEN
                    v_wrong = 1;
                ELSE
                    v_word = v_word || v_char;
            END
        END
        ELSE IF (POSITION(v_char, c_blanks || ',}]') > 0) THEN
        BEGIN
            IF (v_word <> '') THEN
            BEGIN
                IF (v_word NOT IN ('true', 'false', 'null')
                    AND v_word NOT SIMILAR TO '(!-)?(0|[1-9][0-9]*)(.[0-9]+)?([eE](!+|!-)?[0-9]+)?' ESCAPE '!') THEN
                    v_wrong = 1;
                v_word = '';
                v_next = ',';
            END
            IF (v_char = ',') THEN
            BEGIN
                v_wrong = IIF(v_next = ',', v_wrong, 1);
                v_next = IIF(RIGHT(v_open, 1) = '{', 'N', 'V');
            END
            ELSE IF (v_char = '}' OR v_char = ']') THEN
            BEGIN
                IF (NOT (v_next = ',' OR v_next = IIF(v_char = '}', 'n', 'v'))
                    OR RIGHT(v_open, 1) <> IIF(v_char = '}', '{', '[')) THEN
                    v_wrong = 1;
                v_open = LEFT(v_open, MAXVALUE(CHAR_LENGTH(v_open) - 1, 0));
                v_next = IIF(v_open = '', '', ',');
            END
            ELSE IF (v_open = '') THEN
                v_wrong = 1;
        END
        ELSE IF (v_char = '"' AND v_next IN ('n', 'N', 'V', 'v') AND v_word = '') THEN
            v_string = 1;
        ELSE IF (v_char = ':' AND v_next = ':') THEN
            v_next = 'V';
        ELSE IF ((v_char = '{' AND v_next = '{' OR v_char IN ('{', '[') AND v_next IN ('V', 'v') AND v_word = '')
            AND CHAR_LENGTH(v_open) < 100) THEN
        BEGIN
            v_open = v_open || v_char;
            v_next = IIF(v_char = '{', 'n', 'v');
        END
        ELSE IF (v_next IN ('V', 'v') AND CHAR_LENGTH(v_word) < 1000) THEN
            v_word = v_word || v_char;
        ELSE
            v_wrong = 1;
    END
    IF (v_wrong = 1 OR v_next <> '' OR v_open <> '') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'headers: must be a JSON object with unique names');
END

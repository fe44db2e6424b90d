-- read_object: the members of a JSON object; no row for NULL.
-- Arguments:   p_object, p_argument (the error's text begins with it), p_nested (1: a value may be an object or an array)
-- Returns:     name, text (the value, decoded; numbers unchanged; NULL for null and for what is nested), kind
--              (string, number, boolean, null, object or array)
--
-- Works on bytes, from quote to quote: character by character takes several times as long. A name may have 1,000
-- characters, all names together 30,000 bytes, a number 1,000 digits; at most 100 levels.
CREATE OR ALTER PROCEDURE imq_read_object (
    p_object mq_text, p_argument varchar(100) CHARACTER SET UTF8, p_nested smallint = 0
)
RETURNS (name varchar(1000) CHARACTER SET UTF8, text mq_text, kind varchar(7) CHARACTER SET ASCII)
AS
DECLARE v_error varchar(200) CHARACTER SET UTF8;
DECLARE v_all blob SUB_TYPE TEXT CHARACTER SET OCTETS; DECLARE v_part blob SUB_TYPE TEXT CHARACTER SET OCTETS;
DECLARE v_chunk varchar(8000) CHARACTER SET OCTETS; DECLARE v_raw varchar(8000) CHARACTER SET OCTETS;
DECLARE v_length integer; DECLARE v_end integer; DECLARE v_back integer; DECLARE v_here integer;
DECLARE v_quote integer;
-- The positions in the text, from 1: of the next byte, the part, the chunk, and the string that is open (0: none).
DECLARE v_at integer = 1;
DECLARE v_part_at integer = 1;
DECLARE v_part_end integer = 0;
DECLARE v_chunk_at integer = 1;
DECLARE v_chunk_end integer = 0;
DECLARE v_string_at integer = 0;
DECLARE v_char varchar(1) CHARACTER SET OCTETS;
-- What may follow. {: the object; n: a name or the end; N: a name; colon; V: a value; v: a value or the end of an array;
-- comma: a comma or an end; empty: nothing.
DECLARE v_next varchar(1) CHARACTER SET ASCII = '{';
-- The open objects and arrays.
DECLARE v_open varchar(101) CHARACTER SET ASCII = '';
-- Not OCTETS: on Firebird 3.0, SIMILAR TO never matches them.
DECLARE v_word varchar(1001) CHARACTER SET ISO8859_1;
DECLARE v_names varchar(30000) CHARACTER SET OCTETS = x'FF';
DECLARE v_wrong smallint = 0;
BEGIN
    IF (p_object IS NULL) THEN
        EXIT;
    v_error = p_argument || ': must be a JSON object with unique names'
        || TRIM(IIF(p_nested = 1, '', ', no nested values and no NUL character'));
    v_all = CAST(p_object AS blob SUB_TYPE TEXT CHARACTER SET OCTETS);
    v_length = OCTET_LENGTH(v_all);
    WHILE (v_at <= v_length AND v_wrong = 0) DO
    BEGIN
        IF (v_at + 3999 > v_chunk_end AND v_chunk_end < v_length) THEN
        BEGIN
            -- SUBSTRING reads from the start of its source: parts keep that short.
            IF (v_at + 7999 > v_part_end AND v_part_end < v_length) THEN
            BEGIN
                v_part_at = v_at;
                v_part = SUBSTRING(v_all FROM v_at FOR 262144);
                v_part_end = v_at + OCTET_LENGTH(v_part) - 1;
            END
            v_chunk_at = v_at;
            v_chunk = SUBSTRING(v_part FROM v_at - v_part_at + 1 FOR 8000);
            v_chunk_end = v_at + OCTET_LENGTH(v_chunk) - 1;
            -- Blanks are the only control characters in a JSON text.
            v_end = 0;
            WHILE (v_end < 32) DO
            BEGIN
                IF (v_end NOT IN (9, 10, 13) AND POSITION(ASCII_CHAR(v_end), v_chunk) > 0) THEN
                    v_wrong = 1;
                v_end = v_end + 1;
            END
        END
        v_here = v_at - v_chunk_at + 1;
        v_char = SUBSTRING(v_chunk FROM v_here FOR 1);
        IF (v_string_at > 0) THEN
        BEGIN
            -- Everything before v_here is complete. Count the backslashes before the next quote, or before the chunk's end.
            v_quote = POSITION('"', v_chunk, v_here);
            v_end = IIF(v_quote > 0, v_quote, v_chunk_end - v_chunk_at + 2);
            v_back = 0;
            WHILE (v_here < v_end - v_back AND SUBSTRING(v_chunk FROM v_end - v_back - 1 FOR 1) = '\') DO
                v_back = v_back + 1;
            IF (v_quote = 0) THEN
            BEGIN
                v_wrong = IIF(v_chunk_end = v_length, 1, v_wrong);
                v_at = v_chunk_end + 1 - MOD(v_back, 2);
            END
            ELSE
            BEGIN
                v_at = v_chunk_at + v_quote;
                IF (MOD(v_back, 2) = 0) THEN
                BEGIN
                    v_end = v_at - 1 - v_string_at;
                    v_raw = '\';
                    IF (v_string_at >= v_chunk_at) THEN
                        v_raw = SUBSTRING(v_chunk FROM v_string_at - v_chunk_at + 1 FOR v_end);
                    IF (POSITION('\', v_raw) = 0 AND POSITION(x'09', v_raw) = 0 AND POSITION(x'0A', v_raw) = 0
                        AND POSITION(x'0D', v_raw) = 0) THEN
                        text = v_raw;
                    ELSE
                        SELECT LIST(j.piece, '')
                        FROM imq_json_text(SUBSTRING(:v_all FROM :v_string_at - 1 FOR :v_end + 2), :v_error) AS j
                        INTO text;
                    v_string_at = 0;
                    IF (v_next IN ('V', 'v')) THEN
                    BEGIN
                        v_next = ',';
                        IF (v_open = '{') THEN
                        BEGIN
                            kind = 'string';
                            SUSPEND;
                        END
                    END
                    ELSE
                    BEGIN
                        v_next = ':';
                        IF (v_open = '{') THEN
                        BEGIN
                            IF (CHAR_LENGTH(text) > 1000 OR OCTET_LENGTH(v_names) + OCTET_LENGTH(text) > 29999) THEN
                                EXECUTE PROCEDURE imq_raise_error('invalid_argument', v_error);
                            name = text;
                            v_raw = CAST(name AS varchar(4000) CHARACTER SET OCTETS);
                            IF (POSITION(x'FF' || v_raw || x'FF', v_names) > 0) THEN
                                v_wrong = 1;
                            v_names = v_names || v_raw || x'FF';
                        END
                    END
                END
            END
        END
        ELSE
        BEGIN
            v_at = v_at + 1;
            IF (v_char = '"' AND v_next IN ('n', 'N', 'V', 'v')) THEN
                v_string_at = v_at;
            ELSE IF (v_char = ':' AND v_next = ':') THEN
                v_next = 'V';
            ELSE IF (v_char = ',' AND v_next = ',') THEN
                v_next = IIF(RIGHT(v_open, 1) = '{', 'N', 'V');
            ELSE IF (v_char = '}' AND v_next IN (',', 'n') AND RIGHT(v_open, 1) = '{'
                OR v_char = ']' AND v_next IN (',', 'v') AND RIGHT(v_open, 1) = '[') THEN
            BEGIN
                v_open = LEFT(v_open, CHAR_LENGTH(v_open) - 1);
                v_next = IIF(v_open = '', '', ',');
            END
            ELSE IF (v_char = '{' AND v_next = '{'
                OR v_char IN ('{', '[') AND v_next IN ('V', 'v') AND p_nested = 1 AND CHAR_LENGTH(v_open) < 100) THEN
            BEGIN
                IF (v_open = '{') THEN
                BEGIN
                    kind = TRIM(IIF(v_char = '{', 'object', 'array'));
                    text = NULL;
                    SUSPEND;
                END
                v_open = v_open || v_char;
                v_next = IIF(v_char = '{', 'n', 'v');
            END
            ELSE IF (v_next IN ('V', 'v') AND (v_char BETWEEN '0' AND '9' OR v_char IN ('-', 't', 'f', 'n'))) THEN
            BEGIN
                v_end = v_here + 1;
                WHILE (v_end <= v_here + 1000
                    AND SUBSTRING(v_chunk FROM v_end FOR 1) NOT IN ('', ',', '}', ']', ' ', x'09', x'0A', x'0D')) DO
                    v_end = v_end + 1;
                v_word = SUBSTRING(v_chunk FROM v_here FOR v_end - v_here);
                v_at = v_chunk_at + v_end - 1;
                v_next = ',';
                kind = TRIM(CASE WHEN v_word = 'null' THEN 'null' WHEN v_word IN ('true', 'false') THEN 'boolean'
                    ELSE 'number' END);
                IF (kind = 'number'
                    AND v_word NOT SIMILAR TO '(!-)?(0|[1-9][0-9]*)(.[0-9]+)?([eE](!+|!-)?[0-9]+)?' ESCAPE '!') THEN
                    v_wrong = 1;
                text = NULLIF(v_word, 'null');
                IF (v_open = '{' AND v_wrong = 0) THEN
                    SUSPEND;
            END
            ELSE IF (v_char NOT IN (' ', x'09', x'0A', x'0D')) THEN
                v_wrong = 1;
        END
    END
    IF (v_wrong = 1 OR v_next <> '') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', v_error);
END

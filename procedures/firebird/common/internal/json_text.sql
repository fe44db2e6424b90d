-- json_text: the value of a JSON string.
-- Arguments:   p_json (UTF-8 bytes: a double quote, the text, a double quote), p_error (the error text if it is not a
--              JSON string)
-- Returns:     piece: the text's bytes, in order; '' for an empty text
--
-- Escapes are replaced in a whole chunk at once: a loop over its characters would take a second per megabyte. Meanwhile
-- the byte FE stands for an escaped quote and FFFF for an escaped backslash; neither occurs in a UTF-8 text.
CREATE OR ALTER PROCEDURE imq_json_text (
    p_json blob SUB_TYPE TEXT CHARACTER SET OCTETS, p_error varchar(200) CHARACTER SET UTF8
)
RETURNS (piece varchar(4000) CHARACTER SET OCTETS)
AS
DECLARE v_part blob SUB_TYPE TEXT CHARACTER SET OCTETS;
-- The positions in p_json, from 1: the start of the part, the start of the chunk, and the last byte before the closing
-- quote.
DECLARE v_part_at integer = 1;
DECLARE v_part_end integer = 0;
DECLARE v_at integer = 2;
DECLARE v_last integer; DECLARE v_length integer; DECLARE v_found integer; DECLARE v_code integer;
DECLARE v_low integer;
-- Not OCTETS: on Firebird 3.0, SIMILAR TO never matches them.
DECLARE v_escape varchar(12) CHARACTER SET ISO8859_1;
DECLARE v_bytes varchar(4) CHARACTER SET OCTETS;
BEGIN
    -- White space may follow the closing quote: the carriage return of a list with CRLF.
    v_last = OCTET_LENGTH(p_json);
    v_found = 0;
    WHILE (v_found = 0 AND v_last > 1) DO
    BEGIN
        v_at = MAXVALUE(v_last - 3999, 1);
        piece = SUBSTRING(p_json FROM v_at FOR v_last - v_at + 1);
        v_found = OCTET_LENGTH(piece);
        WHILE (v_found > 0 AND SUBSTRING(piece FROM v_found FOR 1) IN (x'20', x'09', x'0D', x'0A')) DO
            v_found = v_found - 1;
        v_last = v_at + v_found - 1;
    END
    IF (v_last < 2 OR SUBSTRING(piece FROM v_found FOR 1) <> '"') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_error);
    v_last = v_last - 1;
    v_at = 2;
    IF (v_last = 1) THEN
    BEGIN
        piece = '';
        SUSPEND;
    END

    WHILE (v_at <= v_last) DO
    BEGIN
        -- SUBSTRING reads from the start of its source: parts keep that short.
        IF (v_at + 3999 > v_part_end AND v_part_end < v_last) THEN
        BEGIN
            v_part_at = v_at;
            v_part = SUBSTRING(p_json FROM v_at FOR MINVALUE(262144, v_last - v_at + 1));
            v_part_end = v_part_at + OCTET_LENGTH(v_part) - 1;
        END
        piece = SUBSTRING(v_part FROM v_at - v_part_at + 1 FOR 4000);
        v_length = OCTET_LENGTH(piece);
        v_code = 0;
        WHILE (v_code < 32) DO
        BEGIN
            IF (POSITION(ASCII_CHAR(v_code), piece) > 0) THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_error);
            v_code = v_code + 1;
        END
        piece = REPLACE(piece, '\\', x'FFFF');
        IF (v_at + v_length <= v_last) THEN
        BEGIN
            -- Cut before an escape that may continue in the next chunk, and before the first half of a surrogate pair.
            v_found = POSITION('\', SUBSTRING(piece FROM v_length - 10));
            IF (v_found > 0) THEN
            BEGIN
                v_length = v_length - 12 + v_found;
                v_escape = SUBSTRING(piece FROM v_length - 5 FOR 4);
                IF (v_escape SIMILAR TO '\u[Dd][89ABab]') THEN
                    v_length = v_length - 6;
                piece = LEFT(piece, v_length);
            END
        END
        v_at = v_at + v_length;

        piece = REPLACE(piece, '\"', x'FE');
        IF (POSITION('"', piece) > 0) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_error);
        v_found = POSITION('\u', piece);
        WHILE (v_found > 0) DO
        BEGIN
            v_escape = SUBSTRING(piece FROM v_found FOR 6);
            IF (v_escape NOT SIMILAR TO '\u[0-9A-Fa-f]{4}') THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_error);
            v_code = CAST('0x' || RIGHT(v_escape, 4) AS integer);
            IF (v_code BETWEEN 55296 AND 56319) THEN
            BEGIN
                v_escape = SUBSTRING(piece FROM v_found FOR 12);
                IF (v_escape NOT SIMILAR TO '\u[0-9A-Fa-f]{4}\u[Dd][C-Fc-f][0-9A-Fa-f]{2}') THEN
                    EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_error);
                v_low = CAST('0x' || RIGHT(v_escape, 4) AS integer);
                v_code = 65536 + (v_code - 55296) * 1024 + v_low - 56320;
            END
            ELSE IF (v_code BETWEEN 56320 AND 57343 OR v_code = 0) THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_error);
            v_bytes = CASE
                WHEN v_code = 34 THEN x'FE'
                WHEN v_code = 92 THEN x'FFFF'
                WHEN v_code < 128 THEN ASCII_CHAR(v_code)
                WHEN v_code < 2048 THEN ASCII_CHAR(192 + v_code / 64) || ASCII_CHAR(128 + MOD(v_code, 64))
                WHEN v_code < 65536 THEN ASCII_CHAR(224 + v_code / 4096) || ASCII_CHAR(128 + MOD(v_code / 64, 64))
                    || ASCII_CHAR(128 + MOD(v_code, 64))
                ELSE ASCII_CHAR(240 + v_code / 262144) || ASCII_CHAR(128 + MOD(v_code / 4096, 64))
                    || ASCII_CHAR(128 + MOD(v_code / 64, 64)) || ASCII_CHAR(128 + MOD(v_code, 64))
            END;
            piece = REPLACE(piece, v_escape, v_bytes);
            v_found = POSITION('\u', piece, v_found);
        END
        IF (POSITION('\', piece) > 0) THEN
        BEGIN
            piece = REPLACE(REPLACE(REPLACE(piece, '\n', x'0A'), '\t', x'09'), '\/', '/');
            piece = REPLACE(REPLACE(REPLACE(piece, '\r', x'0D'), '\b', x'08'), '\f', x'0C');
            IF (POSITION('\', piece) > 0) THEN
                EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_error);
        END
        piece = REPLACE(REPLACE(piece, x'FE', '"'), x'FFFF', '\');
        SUSPEND;
    END
END

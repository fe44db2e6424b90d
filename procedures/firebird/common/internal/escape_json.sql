-- escape_json: complete the JSON that row_json composes: insert the escapes that JSON requires.
-- Arguments:   p_raw (UTF-8 bytes; each byte FE stands for a quote that delimits a text)
-- Returns:     UTF-8 bytes
--
-- The bytes FE and FF occur in no UTF-8 text. So one call escapes a whole row, including the names of its columns.
CREATE OR ALTER FUNCTION imq_escape_json (p_raw blob SUB_TYPE TEXT CHARACTER SET OCTETS)
RETURNS blob SUB_TYPE TEXT CHARACTER SET OCTETS
AS
DECLARE v_raw varchar(24000) CHARACTER SET OCTETS;
-- Not OCTETS: on Firebird 3.0, SIMILAR TO never matches them.
DECLARE v_latin varchar(4000) CHARACTER SET ISO8859_1;
DECLARE v_pattern varchar(20) CHARACTER SET ISO8859_1;
DECLARE v_code integer = 0;
BEGIN
    v_code = OCTET_LENGTH(p_raw);
    IF (v_code > 4000) THEN
        -- Split in halves, because each SUBSTRING reads its source again from the start.
        RETURN imq_escape_json(SUBSTRING(p_raw FROM 1 FOR v_code / 2)) || imq_escape_json(SUBSTRING(p_raw FROM v_code / 2 + 1));
    v_raw = p_raw;
    v_latin = v_raw;
    v_pattern = '%["\\' || ASCII_CHAR(1) || '-' || ASCII_CHAR(31) || ']%';
    IF (v_latin SIMILAR TO v_pattern ESCAPE '\' OR POSITION(x'00', v_raw) > 0) THEN
    BEGIN
        v_raw = REPLACE(REPLACE(v_raw, '\', '\\'), '"', '\"');
        v_raw = REPLACE(REPLACE(REPLACE(v_raw, x'0A', '\n'), x'0D', '\r'), x'09', '\t');
        v_code = 0;
        WHILE (v_code < 32) DO
        BEGIN
            IF (POSITION(ASCII_CHAR(v_code), v_raw) > 0) THEN
                v_raw = REPLACE(v_raw, ASCII_CHAR(v_code),
                    '\u00' || TRIM(IIF(v_code < 16, '0', '1')) || SUBSTRING('0123456789abcdef' FROM MOD(v_code, 16) + 1 FOR 1));
            v_code = v_code + 1;
        END
    END
    RETURN REPLACE(v_raw, x'FE', '"');
END

-- utf8_bytes: convert a text without a character set to UTF-8: valid UTF-8 is unchanged, other bytes are read as Latin 1.
-- Returns:     UTF-8 bytes
CREATE OR ALTER FUNCTION imq_utf8_bytes (p_bytes blob SUB_TYPE TEXT CHARACTER SET OCTETS)
RETURNS blob SUB_TYPE TEXT CHARACTER SET OCTETS
AS
DECLARE v_bytes varchar(8000) CHARACTER SET OCTETS;
DECLARE v_text varchar(8000) CHARACTER SET UTF8;
DECLARE v_latin varchar(8000) CHARACTER SET ISO8859_1;
DECLARE v_half integer;
BEGIN
    v_half = OCTET_LENGTH(p_bytes);
    IF (v_half > 8000) THEN
    BEGIN
        -- Do not cut inside a character.
        v_half = v_half / 2;
        v_bytes = SUBSTRING(p_bytes FROM v_half - 2 FOR 4);
        WHILE (RIGHT(v_bytes, 1) BETWEEN x'80' AND x'BF' AND OCTET_LENGTH(v_bytes) > 1) DO
        BEGIN
            v_bytes = LEFT(v_bytes, OCTET_LENGTH(v_bytes) - 1);
            v_half = v_half - 1;
        END
        RETURN imq_utf8_bytes(SUBSTRING(p_bytes FROM 1 FOR v_half)) || imq_utf8_bytes(SUBSTRING(p_bytes FROM v_half + 1));
    END
    v_bytes = p_bytes;
    BEGIN
        v_text = v_bytes;
        WHEN ANY DO
        BEGIN
            v_latin = v_bytes;
            v_text = v_latin;
        END
    END
    RETURN v_text;
END

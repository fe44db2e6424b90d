-- base64: encode bytes as base64, in one line.
-- Returns:     the text; NULL for NULL
--
-- Firebird 3.0 has no function for it and needs about one second per megabyte.
CREATE OR ALTER FUNCTION imq_base64 (p_bytes blob SUB_TYPE TEXT CHARACTER SET OCTETS)
RETURNS blob SUB_TYPE TEXT CHARACTER SET OCTETS
AS
DECLARE c_digits varchar(64) CHARACTER SET ASCII = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
DECLARE v_bytes varchar(3000) CHARACTER SET OCTETS;
DECLARE v_text varchar(4000) CHARACTER SET OCTETS = '';
DECLARE v_length integer;
DECLARE v_at integer = 1;
DECLARE v_three integer;
BEGIN
    /*!4 RETURN BASE64_ENCODE(p_bytes); */
    v_length = OCTET_LENGTH(p_bytes);
    IF (v_length > 3000) THEN
    BEGIN
        -- Split in halves, because each SUBSTRING reads its source again from the start.
        v_at = v_length / 6 * 3;
        RETURN imq_base64(SUBSTRING(p_bytes FROM 1 FOR v_at)) || imq_base64(SUBSTRING(p_bytes FROM v_at + 1));
    END
    v_bytes = p_bytes;
    WHILE (v_at <= v_length) DO
    BEGIN
        v_three = ASCII_VAL(SUBSTRING(v_bytes FROM v_at FOR 1)) * 65536;
        IF (v_at + 1 <= v_length) THEN
            v_three = v_three + ASCII_VAL(SUBSTRING(v_bytes FROM v_at + 1 FOR 1)) * 256;
        IF (v_at + 2 <= v_length) THEN
            v_three = v_three + ASCII_VAL(SUBSTRING(v_bytes FROM v_at + 2 FOR 1));
        v_text = v_text || SUBSTRING(c_digits FROM v_three / 262144 + 1 FOR 1)
            || SUBSTRING(c_digits FROM MOD(v_three / 4096, 64) + 1 FOR 1)
            || IIF(v_at + 1 <= v_length, SUBSTRING(c_digits FROM MOD(v_three / 64, 64) + 1 FOR 1), '=')
            || IIF(v_at + 2 <= v_length, SUBSTRING(c_digits FROM MOD(v_three, 64) + 1 FOR 1), '=');
        v_at = v_at + 3;
    END
    IF (p_bytes IS NULL) THEN
        RETURN NULL;
    RETURN v_text;
END

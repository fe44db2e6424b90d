-- base64: encode bytes as base64, in one line.
-- Arguments:   p_bytes
-- Returns:     the text; NULL for NULL
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq_base64('Firebird') FROM rdb$database;
--
-- This variant for Firebird 4.0 and later replaces base64.sql: Firebird 3.0 has no such function.

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_base64 (
    p_bytes blob SUB_TYPE TEXT CHARACTER SET OCTETS
)
RETURNS blob SUB_TYPE TEXT CHARACTER SET OCTETS
AS
BEGIN
    RETURN BASE64_ENCODE(p_bytes);
END^

SET TERM ; ^

-- base64: encode bytes as base64, in one line.
-- This variant for Firebird 4.0 and later replaces base64.sql: Firebird 3.0 has no such function.
SET TERM ^ ;
CREATE OR ALTER FUNCTION imq_base64 (p_bytes blob SUB_TYPE TEXT CHARACTER SET OCTETS)
RETURNS blob SUB_TYPE TEXT CHARACTER SET OCTETS
AS
BEGIN
    RETURN BASE64_ENCODE(p_bytes);
END^
SET TERM ; ^

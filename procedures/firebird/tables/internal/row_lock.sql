-- row_lock: return the end of a dynamic FOR SELECT that locks and reads one row of a user's table.
-- Returns:     the last words of the FOR SELECT
--
-- row_lock.5.sql is the body for Firebird 5.0 and later, which has SKIP LOCKED.
SET TERM ^ ;
CREATE OR ALTER FUNCTION imq_row_lock
RETURNS varchar(100) CHARACTER SET UTF8
AS
BEGIN
    RETURN 'WITH LOCK INTO json, content AS CURSOR c';
END^
SET TERM ; ^

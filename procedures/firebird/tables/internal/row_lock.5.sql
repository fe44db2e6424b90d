-- row_lock: return the end of a dynamic FOR SELECT that locks and reads one row of a user's table.
--
-- This is the body for Firebird 5.0 and later; row_lock.sql is for older versions. It also skips rows that others have
-- changed since this call began. With the other body such a row makes the engine restart the whole call.
SET TERM ^ ;
CREATE OR ALTER FUNCTION imq_row_lock
RETURNS varchar(100) CHARACTER SET UTF8
AS
BEGIN
    RETURN 'WITH LOCK SKIP LOCKED INTO json, content AS CURSOR c';
END^
SET TERM ; ^

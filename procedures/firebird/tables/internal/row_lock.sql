-- row_lock: return the end of a dynamic FOR SELECT that locks and reads one row of a user's table.
-- Arguments:   none
-- Returns:     the last words of the FOR SELECT
-- Errors:      none
-- Transaction: reads nothing
-- Example:     'FOR SELECT ... FROM "T" AS r WHERE r.RDB$DB_KEY = p_place ' || mq_row_lock() || ' DO'
--
-- row_lock.5.sql is the body for Firebird 5.0 and later, which has SKIP LOCKED.

SET TERM ^ ;

CREATE OR ALTER FUNCTION mq_row_lock
RETURNS varchar(100) CHARACTER SET UTF8
AS
BEGIN
    RETURN 'WITH LOCK INTO json, content AS CURSOR c';
END^

SET TERM ; ^

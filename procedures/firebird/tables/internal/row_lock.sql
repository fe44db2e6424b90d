-- row_lock: return the end of a dynamic FOR SELECT that locks and reads one row of a user's table.
-- Returns:     the last words of the FOR SELECT
--
-- SKIP LOCKED also skips rows that others have changed since this call began. Before 5.0, such a row makes the engine
-- restart the whole call.
CREATE OR ALTER FUNCTION imq_row_lock
RETURNS varchar(100) CHARACTER SET UTF8
AS
BEGIN
    /*!5 RETURN 'WITH LOCK SKIP LOCKED INTO json, content AS CURSOR c'; */
    RETURN 'WITH LOCK INTO json, content AS CURSOR c';
END

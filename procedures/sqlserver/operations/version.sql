-- version: return the release that is installed, and its areas.
-- Arguments:   none
-- Returns:     version (such as 0.1.0; NULL before apply has ended), areas (their names in alphabetical order, separated by commas)
-- Errors:      none
-- Transaction: reads only
-- Example:     EXEC mq.version;
CREATE OR ALTER PROCEDURE mq.version
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: no locks of this read stay
    SELECT (SELECT TOP (1) name FROM mq.installed WHERE kind = 'release' ORDER BY applied_at DESC) AS version,
        STUFF((SELECT N',' + name FROM mq.installed WHERE kind = 'area' ORDER BY name FOR XML PATH(N'')), 1, 1, N'') AS areas;
END;

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
    DECLARE @areas nvarchar(max), @next nvarchar(200) = N'';
    -- One after the other: STRING_AGG exists only from 2017 on.
    WHILE @next IS NOT NULL
    BEGIN
        SET @next = (SELECT MIN(name) FROM mq.installed WHERE kind = 'area' AND name > @next);
        SET @areas = COALESCE(@areas + N',' + @next, @next, @areas);
    END;
    SELECT (SELECT TOP (1) name FROM mq.installed WHERE kind = 'release' ORDER BY applied_at DESC) AS version, @areas AS areas;
END;

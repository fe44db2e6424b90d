-- lacks: what the caller may not do with a table.
-- Arguments:   @quoted (the table: [schema].[name]), @update, @delete (1: it is to be changed so)
-- Returns:     a text with the GRANT to be executed; NULL: nothing lacks
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT mq.lacks(N'[dbo].[orders]', 1, 0);

CREATE OR ALTER FUNCTION mq.lacks (@quoted nvarchar(600), @update bit, @delete bit)
RETURNS nvarchar(1400)
AS
BEGIN
    IF HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'SELECT') = 1
        AND (@update = 0 OR HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'UPDATE') = 1)
        AND (@delete = 0 OR HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'DELETE') = 1)
        RETURN NULL;
    RETURN CONCAT(N'the caller needs the right himself: GRANT SELECT', CASE @update WHEN 1 THEN N', UPDATE' END,
        CASE @delete WHEN 1 THEN N', DELETE' END, N' ON ', @quoted, N' TO ',
        QUOTENAME(CAST(USER_NAME() AS nvarchar(128))));
END;
GO

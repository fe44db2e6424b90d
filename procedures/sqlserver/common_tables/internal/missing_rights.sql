-- missing_rights: the missing rights of the caller on a table.
-- Arguments: @quoted (the table: [schema].[name]), @update, @delete (1: the call updates, deletes)
-- Returns: an error text with the GRANT to run; NULL: the caller has all rights
CREATE OR ALTER FUNCTION mq_internal.missing_rights (@quoted nvarchar(600), @update bit, @delete bit)
RETURNS nvarchar(2000)
AS
BEGIN
    IF HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'SELECT') = 1
        AND (@update = 0 OR HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'UPDATE') = 1)
        AND (@delete = 0 OR HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'DELETE') = 1)
        RETURN NULL;
    DECLARE @rights nvarchar(30) = CONCAT(N'SELECT', CASE @update WHEN 1 THEN N', UPDATE' END, CASE @delete WHEN 1 THEN N', DELETE' END);
    DECLARE @user nvarchar(300) = QUOTENAME(CAST(USER_NAME() AS nvarchar(128)));
    RETURN CONCAT(@user, N' must hold ', @rights, N' on ', @quoted, N': GRANT ', @rights, N' ON ', @quoted, N' TO ', @user);
END;

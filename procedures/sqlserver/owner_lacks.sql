-- owner_lacks: what the queue's owner may not do with a table.
-- Arguments:   @object_id (the table), @update, @delete (1: it is to be changed so)
-- Returns:     @lacks: a GRANT to be executed; NULL: nothing lacks
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     EXEC mq.owner_lacks @object_id, 1, 0, @lacks OUTPUT;

CREATE OR ALTER PROCEDURE mq.owner_lacks
    @object_id int,
    @update bit,
    @delete bit,
    @lacks nvarchar(1000) OUTPUT
WITH EXECUTE AS OWNER
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @quoted nvarchar(600);
    SELECT @lacks = NULL, @quoted = CONCAT(
        N'[', REPLACE(CAST(OBJECT_SCHEMA_NAME(@object_id) AS nvarchar(128)), N']', N']]'), N'].[',
        REPLACE(CAST(OBJECT_NAME(@object_id) AS nvarchar(128)), N']', N']]'), N']'
    );
    IF COALESCE(HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'SELECT'), 0) = 0
        OR (@update = 1 AND COALESCE(HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'UPDATE'), 0) = 0)
        OR (@delete = 1 AND COALESCE(HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'DELETE'), 0) = 0)
        SET @lacks = CONCAT(N'GRANT SELECT', CASE @update WHEN 1 THEN N', UPDATE' END, CASE @delete WHEN 1 THEN N', DELETE' END,
            N' ON ', @quoted, N' TO [', REPLACE(CAST(USER_NAME() AS nvarchar(128)), N']', N']]'), N']');
END;
GO

-- highest_number: the highest number in a column of a table, and what the queue's owner may not do there.
-- Arguments:   @object_id (the table), @column (quoted), @look (1: look for the number)
-- Returns:     @highest (0 in an empty column), @lacks (a GRANT to be executed; NULL: nothing lacks)
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     EXEC mq.highest_number @object_id, N'[sync]', 1, @highest OUTPUT, @lacks OUTPUT;
--
-- EXECUTE AS OWNER, as all that reaches the users' tables: dynamic SQL has the rights of who runs it, and not those of the
-- procedure's owner. Whoever can call these procedures names a feed, or one column, and no statement.

CREATE OR ALTER PROCEDURE mq.highest_number
    @object_id int,
    @column nvarchar(300),
    @look bit,
    @highest bigint OUTPUT,
    @lacks nvarchar(1000) OUTPUT
WITH EXECUTE AS OWNER
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @quoted nvarchar(600), @name nvarchar(300), @hint nvarchar(300), @statement nvarchar(max);
    -- By the catalog, whatever the arguments are: they become part of a statement.
    SELECT @quoted = CONCAT(
        N'[', REPLACE(CAST(OBJECT_SCHEMA_NAME(@object_id) AS nvarchar(128)), N']', N']]'), N'].[',
        REPLACE(CAST(OBJECT_NAME(@object_id) AS nvarchar(128)), N']', N']]'), N']'
    );
    SELECT @name = quoted FROM mq.columns_of(@object_id, @column);
    SELECT @lacks = NULL, @highest = 0;
    IF COALESCE(HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'SELECT'), 0) = 0
        OR COALESCE(HAS_PERMS_BY_NAME(@quoted, 'OBJECT', 'UPDATE'), 0) = 0
        SET @lacks = CONCAT(N'GRANT SELECT, UPDATE ON ', @quoted, N' TO [',
            REPLACE(CAST(USER_NAME() AS nvarchar(128)), N']', N']]'), N']');
    ELSE IF @look = 1
    BEGIN
        SET @hint = mq.index_hint(@object_id, @name);
        SET @statement = CONCAT(N'SELECT @highest = MAX(', @name, N') FROM ', @quoted, N' WITH (READCOMMITTEDLOCK', @hint, N');');
        EXEC sp_executesql @statement, N'@highest bigint OUTPUT', @highest = @highest OUTPUT;
        SET @highest = CASE WHEN @highest > 0 THEN @highest ELSE 0 END;
    END;
END;
GO

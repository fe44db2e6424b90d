-- object_fingerprint: a hash of an object's definition in the catalog, to detect changes made by hand.
-- Arguments: @name (a procedure or function of schema mq or mq_internal, a view, or an index of one of its tables)
-- Returns: 32 bytes; NULL when there is no such object, or the index is disabled
--
-- The catalog does not show an object's text to users that may only execute it. So grants.sql lets the roles view
-- definitions in both schemas. EXECUTE AS OWNER would work for every user, but it fails with error 15517 in a restored
-- database whose owner has no login on the new server.
CREATE OR ALTER FUNCTION mq_internal.object_fingerprint (@name nvarchar(200))
RETURNS varbinary(32)
AS
BEGIN
    DECLARE @definition nvarchar(max);
    SELECT @definition = definition
    FROM sys.sql_modules
    WHERE object_id IN (OBJECT_ID(CONCAT(N'mq.', QUOTENAME(@name))), OBJECT_ID(CONCAT(N'mq_internal.', QUOTENAME(@name))));
    IF @definition IS NULL
        SELECT TOP (1) @definition = CONCAT(t.name, N' ', i.type_desc, N' ', i.is_unique)
        FROM sys.tables AS t
        INNER JOIN sys.indexes AS i ON i.object_id = t.object_id
        WHERE t.schema_id = SCHEMA_ID(N'mq') AND CONCAT(t.name, N'.', i.name) = @name AND i.is_disabled = 0 AND i.is_hypothetical = 0
        ORDER BY t.name;
    RETURN HASHBYTES('SHA2_256', @definition);
END;

-- table_facts: whether a table exists, and whether a security policy hides rows of it.
-- Arguments: @quoted (the table: [schema].[name])
-- Returns: 0: no such table; 1: it exists; 2: it exists, and a security policy filters its rows; -1: a view or another
--     object has its name
--
-- The only object that runs as its owner, because the catalog does not show this to everybody. It reads no
-- user's table and evaluates nothing that a user can define.
CREATE OR ALTER FUNCTION mq_internal.table_facts (@quoted nvarchar(600))
RETURNS int
WITH EXECUTE AS OWNER
AS
BEGIN
    DECLARE @object_id int = OBJECT_ID(@quoted, N'U');
    RETURN CASE
        WHEN @object_id IS NULL THEN CASE WHEN OBJECT_ID(@quoted) IS NULL THEN 0 ELSE -1 END
        WHEN EXISTS (
            SELECT *
            FROM sys.security_predicates AS p
            INNER JOIN sys.security_policies AS s ON s.object_id = p.object_id
            WHERE p.target_object_id = @object_id AND p.predicate_type = 0 AND s.is_enabled = 1
        ) THEN 2
        ELSE 1
    END;
END;

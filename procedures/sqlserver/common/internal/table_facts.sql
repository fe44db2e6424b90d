-- table_facts: whether a table is there, and whether a policy hides rows of it, which the catalog does not show to everybody.
-- Arguments:   @quoted (the table: [schema].[name])
-- Returns:     0: there is none; 1: it is there; 2: a security policy filters its rows
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT mq.table_facts(N'[dbo].[orders]');
--
-- The only object that runs as its owner. It reads the catalog and nothing else: no table of a user's, and nothing that a user
-- can define is evaluated.

CREATE OR ALTER FUNCTION mq.table_facts (@quoted nvarchar(600))
RETURNS int
WITH EXECUTE AS OWNER
AS
BEGIN
    DECLARE @object_id int = OBJECT_ID(@quoted, N'U');
    RETURN CASE
        WHEN @object_id IS NULL THEN 0
        WHEN EXISTS (
            SELECT *
            FROM sys.security_predicates AS p
            INNER JOIN sys.security_policies AS s ON s.object_id = p.object_id
            WHERE p.target_object_id = @object_id AND p.predicate_type = 0 AND s.is_enabled = 1
        ) THEN 2
        ELSE 1
    END;
END;
GO

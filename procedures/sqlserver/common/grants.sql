-- grants: the roles, and no rights for others; the other areas' files grant the rest. All objects have one owner.

IF NOT EXISTS (SELECT * FROM sys.database_principals WHERE name = N'mq_producer')
    CREATE ROLE mq_producer;
IF NOT EXISTS (SELECT * FROM sys.database_principals WHERE name = N'mq_consumer')
    CREATE ROLE mq_consumer;
IF NOT EXISTS (SELECT * FROM sys.database_principals WHERE name = N'mq_operator')
    CREATE ROLE mq_operator;
IF NOT EXISTS (SELECT * FROM sys.database_principals WHERE name = N'mq_viewer')
    CREATE ROLE mq_viewer;

-- First revoke all rights of public, guest and the four roles in the schema, including those granted by hand. Other
-- users and roles keep their rights.
DECLARE @revoke nvarchar(max), @n int = 0;
DECLARE @wrong TABLE (n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, statement nvarchar(1000) NOT NULL);
INSERT INTO @wrong (statement)
SELECT CONCAT(N'REVOKE ', p.permission_name, N' ON OBJECT::', QUOTENAME(SCHEMA_NAME(o.schema_id)), N'.', QUOTENAME(o.name), N' FROM ', QUOTENAME(g.name), N' CASCADE')
FROM sys.database_permissions AS p
INNER JOIN sys.objects AS o ON o.object_id = p.major_id AND o.schema_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal'))
INNER JOIN sys.database_principals AS g ON g.principal_id = p.grantee_principal_id
WHERE p.class = 1 AND p.minor_id = 0 AND p.state IN ('G', 'W')
    AND g.name IN (N'public', N'guest', N'mq_producer', N'mq_consumer', N'mq_operator', N'mq_viewer')
UNION
SELECT CONCAT(N'REVOKE ', p.permission_name, N' ON SCHEMA::', SCHEMA_NAME(p.major_id), N' FROM ', QUOTENAME(g.name), N' CASCADE')
FROM sys.database_permissions AS p
INNER JOIN sys.database_principals AS g ON g.principal_id = p.grantee_principal_id
WHERE p.class = 3 AND p.major_id IN (SCHEMA_ID(N'mq'), SCHEMA_ID(N'mq_internal')) AND p.state IN ('G', 'W')
    AND g.name IN (N'public', N'guest', N'mq_producer', N'mq_consumer', N'mq_operator', N'mq_viewer');
WHILE @n IS NOT NULL
BEGIN
    SET @n = (SELECT MIN(n) FROM @wrong WHERE n > @n);
    SELECT @revoke = statement FROM @wrong WHERE n = @n;
    IF @n IS NOT NULL
        EXEC sp_executesql @revoke;
END;
GO
-- mq_internal.installed_files and mq.queue_health compare the text of the procedures; this right shows no row of a table.
GRANT VIEW DEFINITION ON SCHEMA::mq TO mq_producer, mq_consumer, mq_operator, mq_viewer;
GRANT VIEW DEFINITION ON SCHEMA::mq_internal TO mq_producer, mq_consumer, mq_operator, mq_viewer;

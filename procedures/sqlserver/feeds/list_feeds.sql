-- list_feeds: list each feed with its consumers and their positions.
-- Arguments:   @feed (1 to 200 characters; NULL: all feeds)
-- Returns:     feed, table_name, last_position, unpublished (counted up to 10,000, only if @feed is given and its table belongs
--              to the caller; otherwise NULL), consumer, feed_position, behind (by how much), moved_at: one row
--              per consumer; a feed without consumers has one row
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks; without READ_COMMITTED_SNAPSHOT it also counts uncommitted rows
-- Example:     EXEC mq.list_feeds N'orders';
--
-- A count of another user's table could run that user's code with the rights of the caller, such as a security policy.
CREATE OR ALTER PROCEDURE mq.list_feeds
    @feed nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @id nvarchar(400), @sync nvarchar(300), @object_id int, @quoted nvarchar(600), @unpublished bigint;
    DECLARE @statement nvarchar(max);
    DECLARE @pieces mq.pieces;
    EXEC mq_internal.require_name 'feed', @feed, 1;
    SET @id = @feed;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT @quoted = CONCAT(QUOTENAME(table_schema), N'.', QUOTENAME(table_name)), @sync = sync_column
    FROM mq.feed WHERE name = @id;
    SELECT @object_id = t.object_id
    FROM sys.tables AS t
    INNER JOIN sys.schemas AS s ON s.schema_id = t.schema_id
    INNER JOIN sys.columns AS k ON k.object_id = t.object_id AND k.is_computed = 0
    INNER JOIN mq_internal.columns_of(OBJECT_ID(@quoted, N'U'), @sync) AS c ON c.column_id = k.column_id AND c.type = N'bigint'
    WHERE t.object_id = OBJECT_ID(@quoted, N'U') AND COALESCE(t.principal_id, s.principal_id) = DATABASE_PRINCIPAL_ID();
    IF @object_id IS NOT NULL AND mq_internal.missing_rights(@quoted, 0, 0) IS NULL
    BEGIN
        INSERT INTO @pieces (name, piece)
        VALUES ('table', @quoted), ('sync', @sync), ('hint', mq_internal.index_hint(@object_id, @sync));
        SET @statement = mq_internal.fill(N'SELECT @unpublished = COUNT(*)
FROM (SELECT TOP (10000) 1 AS one FROM {table} WITH (ROWLOCK{hint}) WHERE {sync} IS NULL) AS w;', @pieces);
        EXEC sp_executesql @statement, N'@unpublished bigint OUTPUT', @unpublished = @unpublished OUTPUT;
    END;
    SELECT f.name AS feed, CONCAT(CASE WHEN f.table_schema <> N'dbo' THEN f.table_schema + N'.' END, f.table_name) AS table_name,
        n.last_number AS last_position, @unpublished AS unpublished, c.consumer, c.position AS feed_position, n.last_number - c.position AS behind,
        c.moved_at
    FROM mq.feed AS f
    LEFT JOIN mq.feed_counter AS n ON n.feed = f.name
    LEFT JOIN mq.feed_consumer AS c ON c.feed = f.name
    WHERE @id IS NULL OR f.name = @id
    ORDER BY f.name, c.consumer;
END;

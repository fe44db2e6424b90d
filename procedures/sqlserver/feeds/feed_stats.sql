-- feed_stats: list each feed with its consumers and their positions.
-- Arguments:   @feed (1 to 200 characters; NULL: all feeds)
-- Returns:     feed, table, last_position, unpublished (counted up to 10,000; NULL: the caller cannot read the table),
--              consumer, position, behind (last_position minus position), moved_at: one row per consumer; a feed without
--              consumers has one row
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks; without READ_COMMITTED_SNAPSHOT it also counts uncommitted rows
-- Example:     EXEC mq.feed_stats;

CREATE OR ALTER PROCEDURE mq.feed_stats
    @feed nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- No name sorts before it. N'' compares like blanks, and a name may begin with a character that sorts before a blank.
    DECLARE @next nvarchar(400) = REPLICATE(NCHAR(1), 400), @schema nvarchar(128), @name nvarchar(128), @sync nvarchar(300);
    DECLARE @object_id int, @quoted nvarchar(600), @last bigint, @unpublished bigint, @statement nvarchar(max);
    DECLARE @pieces mq.pieces;
    DECLARE @rows TABLE (
        feed nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, label nvarchar(300) NOT NULL, last bigint,
        unpublished bigint
    );
    EXEC mq.require_name 'feed', @feed, 1;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @feed IS NOT NULL
        SET @next = @feed;
    WHILE @next IS NOT NULL
    BEGIN
        IF @feed IS NULL
            SET @next = (SELECT MIN(name) FROM mq.feed WHERE name > @next);
        SET @name = NULL;
        SELECT @schema = table_schema, @name = table_name, @sync = sync_column FROM mq.feed WHERE name = @next;
        IF @name IS NULL
            BREAK;
        SET @quoted = CONCAT(QUOTENAME(@schema), N'.', QUOTENAME(@name));
        SELECT @object_id = OBJECT_ID(@quoted, N'U'), @unpublished = NULL, @last = NULL;
        IF EXISTS (SELECT * FROM mq.columns_of(@object_id, @sync)) AND mq.missing_rights(@quoted, 0, 0) IS NULL
        BEGIN
            DELETE FROM @pieces;
            INSERT INTO @pieces (name, piece)
            VALUES ('table', @quoted), ('sync', @sync), ('hint', mq.index_hint(@object_id, @sync));
            SET @statement = mq.fill(N'SELECT @unpublished = COUNT(*)
FROM (SELECT TOP (10000) 1 AS one FROM {table} WITH (ROWLOCK{hint}) WHERE {sync} IS NULL) AS w;', @pieces);
            EXEC sp_executesql @statement, N'@unpublished bigint OUTPUT', @unpublished = @unpublished OUTPUT;
        END;
        SELECT @last = last_number FROM mq.feed_counter WHERE feed = @next;
        INSERT INTO @rows (feed, label, last, unpublished)
        VALUES (@next, CONCAT(CASE WHEN @schema <> N'dbo' THEN @schema + N'.' END, @name), @last, @unpublished);
        IF @feed IS NOT NULL
            BREAK;
    END;
    SELECT r.feed, r.label AS [table], r.last AS last_position, r.unpublished, c.consumer, c.position,
        r.last - c.position AS behind, c.moved_at
    FROM @rows AS r
    LEFT JOIN mq.feed_consumer AS c ON c.feed = r.feed
    ORDER BY r.feed, c.consumer;
END;
GO

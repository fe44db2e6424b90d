-- list_subscriptions: list the watched tables, and the types or topics that their changes are sent to.
-- Arguments:   @table (a watched table; NULL: all)
-- Returns:     table_name, action, type, topic (type or topic: NULL): one row per subscription; a table without any has one row
--              with NULLs
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: reads only
-- Example:     EXEC mq.list_subscriptions;
CREATE OR ALTER PROCEDURE mq.list_subscriptions
    @table nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: no locks of this read stay
    DECLARE @id int, @object_id int, @schema nvarchar(128), @label nvarchar(300);
    IF @table IS NOT NULL
        EXEC mq_internal.find_watched @table, NULL, @id OUTPUT, @object_id OUTPUT, @schema OUTPUT, @label OUTPUT;
    SELECT CONCAT(CASE WHEN w.table_schema <> N'dbo' THEN w.table_schema + N'.' END, w.table_name) AS table_name, s.action, NULLIF(s.type, N'') AS type,
        NULLIF(s.topic, N'') AS topic
    FROM mq.watched AS w
    LEFT JOIN mq.subscription AS s ON s.watched_id = w.id
    WHERE @id IS NULL OR w.id = @id
    ORDER BY w.table_schema, w.table_name, CHARINDEX(s.action, 'IUD'), s.type, s.topic;
END;

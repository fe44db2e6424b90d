-- fetch_feed: return the rows after a consumer's position, in the order of their numbers.
-- Arguments:   @feed, @consumer (1 to 200 characters each; a new consumer starts at the first row), @size (1 to 10,000;
--              NULL: 100)
-- Returns:     feed_position (the row's number), row_key and row_data (JSON objects of the key columns, and of all)
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: reads only; without READ_COMMITTED_SNAPSHOT it waits for an open publish_feed and for transactions that are
--              changing one of the rows
-- Example:     EXEC mq.fetch_feed N'orders', N'search', 100;
--
-- The feed's last number is read first: rows that commit meanwhile have higher numbers. Locked rows are not skipped: their
-- writer may roll back, and the consumer would miss them.
CREATE OR ALTER PROCEDURE mq.fetch_feed
    @feed nvarchar(max),
    @consumer nvarchar(max),
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @id nvarchar(400), @who nvarchar(400), @from bigint, @to bigint, @top int;
    DECLARE @object_id int, @quoted nvarchar(600), @keys nvarchar(4000), @sync nvarchar(300), @hint nvarchar(300);
    DECLARE @statement nvarchar(max);
    DECLARE @pieces mq.pieces;
    EXEC mq_internal.require_name 'feed', @feed, 0;
    EXEC mq_internal.require_name 'consumer', @consumer, 0;
    EXEC mq_internal.require_range 'size', @size, 1, 10000;
    SELECT @id = @feed, @who = @consumer, @top = COALESCE(@size, 100);
    EXEC mq_internal.find_feed @id, 0, @object_id OUTPUT, @quoted OUTPUT, @keys OUTPUT, @sync OUTPUT, @hint OUTPUT;
    SELECT @from = position
    FROM mq.feed_consumer WITH (ROWLOCK, FORCESEEK, INDEX (feed_consumer_pk))
    WHERE feed = @id AND consumer = @who;
    SELECT @to = last_number FROM mq.feed_counter WHERE feed = @id;
    SET @from = COALESCE(@from, 0);
    INSERT INTO @pieces (name, piece)
    VALUES ('table', @quoted), ('sync', @sync), ('hint', @hint), ('key', mq_internal.row_json(@object_id, @keys, N't')),
        ('row', mq_internal.row_json(@object_id, NULL, N't'));
    SET @statement = mq_internal.fill(N'SELECT TOP (@top) t.{sync} AS feed_position, {key} AS row_key, {row} AS row_data
FROM {table} AS t WITH (ROWLOCK{hint})
WHERE t.{sync} > @from AND t.{sync} <= @to
ORDER BY t.{sync}
OPTION (KEEPFIXED PLAN);', @pieces);
    EXEC sp_executesql @statement, N'@top int, @from bigint, @to bigint', @top = @top, @from = @from, @to = @to;
END;

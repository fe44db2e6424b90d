-- drop_feed: forget a feed and its consumers; the table and its numbers stay unchanged.
-- Arguments:   @feed (1 to 200 characters)
-- Returns:     affected: 1; 0 when there is no such feed
-- Errors:      50002 invalid_argument, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for open transactions that have published this feed
-- Example:     EXEC mq.drop_feed N'orders';
--
-- To drop the feed of a table that was dropped, the role is enough. A view in its place needs the rights on the view.
CREATE OR ALTER PROCEDURE mq.drop_feed
    @feed nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @id nvarchar(400), @count bigint, @detail nvarchar(2000), @quoted nvarchar(600), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    BEGIN TRY
        EXEC mq_internal.require_name 'feed', @feed, 0;
        SET @id = @feed;
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @quoted = CONCAT(QUOTENAME(table_schema), N'.', QUOTENAME(table_name)) FROM mq.feed WHERE name = @id;
        IF mq_internal.table_facts(@quoted) <> 0
            SET @detail = mq_internal.missing_rights(@quoted, 1, 0);
        IF @detail IS NOT NULL
            EXEC mq_internal.raise_error 'unsuitable_table', @detail;
        -- Delete the counter first, in the lock order of publishers. After that nobody can add a consumer.
        DELETE FROM mq.feed_counter WITH (ROWLOCK) WHERE feed = @id;
        DELETE FROM mq.feed WITH (ROWLOCK) WHERE name = @id;
        SET @count = @@ROWCOUNT;
        DELETE c FROM mq.feed_consumer AS c WITH (ROWLOCK, FORCESEEK, INDEX (feed_consumer_pk)) WHERE c.feed = @id;
        IF @own = 1
            COMMIT TRANSACTION;
        SELECT @count AS affected;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

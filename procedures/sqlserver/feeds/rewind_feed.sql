-- rewind_feed: move a consumer's position back: the consumer fetches earlier rows again.
-- Arguments:   @feed, @consumer (1 to 200 characters each), @position (0, all rows, to the consumer's position)
-- Returns:     feed_position: the consumer's position now
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for other calls that move the same consumer
-- Example:     EXEC mq.rewind_feed N'orders', N'search', 0;
CREATE OR ALTER PROCEDURE mq.rewind_feed
    @feed nvarchar(max),
    @consumer nvarchar(max),
    @position bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @id nvarchar(400), @who nvarchar(400), @stands bigint;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    BEGIN TRY
        EXEC mq_internal.require_name 'feed', @feed, 0;
        EXEC mq_internal.require_name 'consumer', @consumer, 0;
        SELECT @id = @feed, @who = @consumer;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.use_feed @id, 0;
        SELECT @stands = position
        FROM mq.feed_consumer WITH (UPDLOCK, ROWLOCK, FORCESEEK, INDEX (feed_consumer_pk))
        WHERE feed = @id AND consumer = @who;
        SET @stands = COALESCE(@stands, 0);
        IF @position IS NULL OR @position NOT BETWEEN 0 AND @stands
            EXEC mq_internal.raise_error 'invalid_argument', N'position: must be 0 to {}, the consumer''s position', @stands;
        UPDATE c
        SET position = @position, moved_at = SYSUTCDATETIME()
        FROM mq.feed_consumer AS c WITH (ROWLOCK, FORCESEEK, INDEX (feed_consumer_pk))
        WHERE c.feed = @id AND c.consumer = @who AND c.position <> @position;
        IF @own = 1
            COMMIT TRANSACTION;
        SELECT @position AS feed_position;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

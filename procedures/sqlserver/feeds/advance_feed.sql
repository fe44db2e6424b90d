-- advance_feed: move a consumer's position forward, past the rows that it has handled.
-- Arguments:   @feed, @consumer (1 to 200 characters each), @position (the last number handled: 0 to the feed's last number)
-- Returns:     feed_position: the consumer's position now; a lower @position changes nothing
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for other calls that move the same consumer
-- Example:     EXEC mq.advance_feed N'orders', N'search', 100;
CREATE OR ALTER PROCEDURE mq.advance_feed
    @feed nvarchar(max),
    @consumer nvarchar(max),
    @position bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @id nvarchar(400), @who nvarchar(400), @last bigint, @stands bigint;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    BEGIN TRY
        EXEC mq_internal.require_name 'feed', @feed, 0;
        EXEC mq_internal.require_name 'consumer', @consumer, 0;
        SELECT @id = @feed, @who = @consumer;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.use_feed @id, 0;
        SELECT @last = last_number FROM mq.feed_counter WHERE feed = @id;
        IF @position IS NULL OR @position NOT BETWEEN 0 AND @last
            EXEC mq_internal.raise_error 'invalid_argument', N'position: must be 0 to {}, the feed''s last number', @last;
        SELECT @stands = position
        FROM mq.feed_consumer WITH (UPDLOCK, ROWLOCK, FORCESEEK, INDEX (feed_consumer_pk))
        WHERE feed = @id AND consumer = @who;
        IF @stands IS NULL
        BEGIN
            -- Of two parallel first calls, the second waits here and then finds the row. This is not a range lock: see
            -- send_message.
            EXEC mq_internal.wait_for_lock 'feed_consumer', @id, @who;
            SELECT @stands = position
            FROM mq.feed_consumer WITH (UPDLOCK, ROWLOCK, FORCESEEK, INDEX (feed_consumer_pk))
            WHERE feed = @id AND consumer = @who;
            -- The feed stays locked until the end: drop_feed waits, and deletes the new row too.
            IF @stands IS NULL
                INSERT INTO mq.feed_consumer (feed, consumer, position, moved_at)
                SELECT name, @who, 0, SYSUTCDATETIME() FROM mq.feed WITH (REPEATABLEREAD, ROWLOCK) WHERE name = @id;
            SET @stands = COALESCE(@stands, 0);
        END;
        IF @position > @stands
        BEGIN
            UPDATE c
            SET position = @position, moved_at = SYSUTCDATETIME()
            FROM mq.feed_consumer AS c WITH (ROWLOCK, FORCESEEK, INDEX (feed_consumer_pk))
            WHERE c.feed = @id AND c.consumer = @who;
            SET @stands = @position;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
        SELECT @stands AS feed_position;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

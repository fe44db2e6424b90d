-- unsubscribe: delete subscriptions of a table.
-- Arguments:   @table (a watched table), @action (I, U or D, or several of them; NULL: all), @type or @topic (both NULL:
--              all); the last three are not all NULL
-- Returns:     affected: subscriptions deleted
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; messages that were sent stay; without READ_COMMITTED_SNAPSHOT writers of the table wait
--              for its end
-- Example:     EXEC mq.unsubscribe N'sales.orders', NULL, N'order.changed';
CREATE OR ALTER PROCEDURE mq.unsubscribe
    @table nvarchar(max),
    @action nvarchar(max) = NULL,
    @type nvarchar(max) = NULL,
    @topic nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @id int, @object_id int, @schema nvarchar(128);
    DECLARE @label nvarchar(300), @name nvarchar(400), @words nvarchar(400), @count bigint;
    BEGIN TRY
        IF COALESCE(@action, @type, @topic) IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'action: give an action, a type or a topic; IUD selects all';
        EXEC mq_internal.require_actions @action, 1;
        IF @type IS NOT NULL AND @topic IS NOT NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'type: give either a type or a topic';
        EXEC mq_internal.require_name 'type', @type, 1;
        EXEC mq_internal.require_name 'topic', @topic, 1;
        SELECT @name = @type, @words = @topic;
        EXEC mq_internal.find_watched @table, 'SELECT', @id OUTPUT, @object_id OUTPUT, @schema OUTPUT, @label OUTPUT;
        IF @own = 1
            BEGIN TRANSACTION;
        DELETE s
        FROM mq.subscription AS s WITH (ROWLOCK, FORCESEEK, INDEX (subscription_pk))
        WHERE s.watched_id = @id AND (@action IS NULL OR CHARINDEX(s.action, @action) > 0)
            AND (@name IS NULL OR s.type = @name) AND (@words IS NULL OR s.topic = @words);
        SET @count = @@ROWCOUNT;
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

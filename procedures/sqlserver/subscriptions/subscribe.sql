-- subscribe: from now on, send a message to a type or topic for each changed row of a table.
-- Arguments:   @table (a watched table), @action (I, U or D, or several of them), and either @type (1 to 200 characters) or
--              @topic (each type bound to it at the time of the change gets one message)
-- Returns:     affected: new subscriptions
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; changes written after its commit are sent; without READ_COMMITTED_SNAPSHOT writers of the
--              table wait for its end
-- Example:     EXEC mq.subscribe N'sales.orders', N'IU', N'order.changed';
CREATE OR ALTER PROCEDURE mq.subscribe
    @table nvarchar(max),
    @action nvarchar(max),
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
        EXEC mq_internal.require_actions @action, 0;
        IF (@type IS NULL AND @topic IS NULL) OR (@type IS NOT NULL AND @topic IS NOT NULL)
            EXEC mq_internal.raise_error 'invalid_argument', N'type: give either a type or a topic';
        EXEC mq_internal.require_name 'type', @type, 1;
        IF @topic IS NOT NULL
            EXEC mq_internal.require_topic 'topic', @topic, 0;
        SELECT @name = COALESCE(@type, N''), @words = COALESCE(@topic, N'');
        -- The messages contain keys of the rows that change.
        EXEC mq_internal.find_watched @table, 'SELECT', @id OUTPUT, @object_id OUTPUT, @schema OUTPUT, @label OUTPUT;
        IF @object_id IS NULL
            EXEC mq_internal.raise_error 'not_found', N'table: there is no table {} any more', @label;
        IF @own = 1
            BEGIN TRANSACTION;
        -- One call at a time: of two equal calls, the second finds the rows of the first.
        EXEC mq_internal.wait_for_lock 'watch_table', N'', N'';
        INSERT INTO mq.subscription (watched_id, action, type, topic)
        SELECT @id, a.action, @name, @words
        FROM (VALUES ('I'), ('U'), ('D')) AS a (action)
        WHERE CHARINDEX(a.action, @action) > 0
            AND NOT EXISTS (
                SELECT * FROM mq.subscription AS s WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (subscription_pk))
                WHERE s.watched_id = @id AND s.action = a.action COLLATE Latin1_General_100_BIN2 AND s.type = @name
                    AND s.topic = @words
            );
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

-- publish_with: send one message with options to each type that is bound to the topic.
-- Arguments:   @topic (words separated by dots, 1 to 200 characters), @body (up to 16 MiB), @options (as for send_with;
--              headers are a JSON object, up to 64 KiB with the topic in it)
-- Returns:     affected: messages sent; a type with a live message of this dedup_key is not counted
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for open transactions that have sent or are finishing the same dedup_key
-- Example:     EXEC mq.publish_with N'orders.eu.paid', N'{"id":17}', N'{"delay_seconds": 60}';
CREATE OR ALTER PROCEDURE mq.publish_with
    @topic nvarchar(max),
    @body nvarchar(max),
    @options nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(7) = SYSUTCDATETIME();
    -- No name sorts before it.
    DECLARE @type nvarchar(400) = REPLICATE(NCHAR(1), 400), @id bigint, @created smallint, @changed smallint, @count bigint = 0;
    DECLARE @types TABLE (type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY NONCLUSTERED);
    DECLARE @run_at datetime2(7), @priority bigint, @group_key nvarchar(max), @dedup_key nvarchar(max), @max_attempts bigint,
        @headers nvarchar(max), @source nvarchar(max), @delay_seconds bigint, @on_conflict nvarchar(max);
    BEGIN TRY
        EXEC mq_internal.require_topic 'topic', @topic, 0;
        EXEC mq_internal.send_options @options, @run_at OUTPUT, @priority OUTPUT, @group_key OUTPUT, @dedup_key OUTPUT,
            @max_attempts OUTPUT, @headers OUTPUT, @source OUTPUT, @delay_seconds OUTPUT, @on_conflict OUTPUT;
        SET @headers = mq_internal.topic_headers(@topic, @headers);
        IF @headers IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'headers: must be a JSON object with unique names';
        EXEC mq_internal.require_message @body, @run_at OUTPUT, @priority, @group_key, @dedup_key, @max_attempts, @headers, @source,
            @delay_seconds, @on_conflict, @now;
        IF @own = 1
            BEGIN TRANSACTION;
        INSERT INTO @types (type) SELECT type FROM mq_internal.topic_types(@topic);
        -- In the order of their names: two publishers with the same dedup_key lock in the same order and do not deadlock.
        WHILE @type IS NOT NULL
        BEGIN
            SET @type = (SELECT MIN(type) FROM @types WHERE type > @type);
            IF @type IS NOT NULL
            BEGIN
                EXEC mq_internal.send_one @type, @body, @run_at, @priority, @group_key, @dedup_key, @max_attempts, @headers, @source,
                    @on_conflict, @now, @id OUTPUT, @created OUTPUT, @changed OUTPUT;
                SET @count = @count + @created;
            END;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected;
END;

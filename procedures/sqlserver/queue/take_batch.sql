-- take_batch: receive and finish messages in one call: a commit removes them, a rollback makes them ready again.
-- Arguments:   @type (1 to 200 characters), @size (1 to 10,000; NULL: 1)
-- Returns:     the messages in order of priority, run_at, id; batch_key and lease_until are NULL; no rows when nothing is
--              ready, no limit allows it, or the queue is paused
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's, which does the work and commits; other claims skip the messages that it has taken
-- Example:     BEGIN TRANSACTION; EXEC mq.take_batch N'email', 10; COMMIT;
CREATE OR ALTER PROCEDURE mq.take_batch
    @type nvarchar(max),
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @key uniqueidentifier = NEWID(), @count int = 0, @settled bigint, @consumer nvarchar(400) = mq_internal.consumer_name(NULL);
    DECLARE @paused bit, @limited bit, @wanted int, @most int;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        SET @name = @type;
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        SET @wanted = COALESCE(@size, 1);
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @paused = paused, @most = max_attempts, @limited = CASE WHEN max_active > 0 OR rate > 0 THEN 1 ELSE 0 END FROM mq_internal.policy(@name);
        IF @paused = 0 AND @limited = 1
            EXEC mq_internal.allowance @name, @wanted, @wanted OUTPUT;
        IF @paused = 0 AND @wanted > 0
            EXEC mq_internal.pick @name, @wanted, 1, @key, @count OUTPUT;
        IF @count > 0 AND @limited = 1
            EXEC mq_internal.spend @name, @count, 0;
        IF @count > 0
        BEGIN
            EXEC mq_internal.return_batch @key, NULL, @most;
            EXEC mq_internal.complete_messages @key, NULL, @name, @consumer, @settled OUTPUT;
        END
        ELSE
            EXEC mq_internal.return_batch NULL, NULL, NULL;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

-- report_consumer: report that a consumer is running, and what it did since its last report.
-- Arguments:   @reader, @type (1 to 200 characters each); since the last report (NULL: 0): the counts (0 to
--              1,000,000,000) @completed, @failed, @dead (NULL: the dead letters are counted here) and @sent (messages
--              sent in the minute of @sent_at whose first attempt this consumer began), and the milliseconds @busy_ms (in
--              handlers, to 10,000,000,000) and @waited_ms (from sending to the first attempt, to 10,000,000,000,000); @sent_at (UTC; NULL: now); @next_seconds
--              (until the next report, 0 to 3,600; 0: the consumer stops; NULL: 60)
-- Returns:     reported_at: the time of this report
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; no two consumers write the same row. It waits at most a second for a transaction
--              that reports under the same name, and then fails with error 1222
-- Example:     EXEC mq.report_consumer N'worker-1', N'email', 120, 3, @busy_ms = 9500, @next_seconds = 10;
CREATE OR ALTER PROCEDURE mq.report_consumer
    @reader nvarchar(max),
    @type nvarchar(max),
    @completed bigint = NULL,
    @failed bigint = NULL,
    @dead bigint = NULL,
    @busy_ms bigint = NULL,
    @waited_ms bigint = NULL,
    @sent bigint = NULL,
    @sent_at datetime2(7) = NULL,
    @next_seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    SET LOCK_TIMEOUT 1000; -- for this call only
    -- In microseconds, because drivers have no more digits: a caller can find the row by the time that it read.
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(6) = SYSUTCDATETIME();
    DECLARE @name nvarchar(400), @who nvarchar(400);
    BEGIN TRY
        EXEC mq_internal.require_name 'reader', @reader, 0;
        EXEC mq_internal.require_name 'type', @type, 0;
        EXEC mq_internal.require_range 'completed', @completed, 0, 1000000000;
        EXEC mq_internal.require_range 'failed', @failed, 0, 1000000000;
        EXEC mq_internal.require_range 'dead', @dead, 0, 1000000000;
        EXEC mq_internal.require_range 'busy_ms', @busy_ms, 0, 10000000000;
        EXEC mq_internal.require_range 'waited_ms', @waited_ms, 0, 10000000000000;
        EXEC mq_internal.require_range 'sent', @sent, 0, 1000000000;
        EXEC mq_internal.require_range 'next_seconds', @next_seconds, 0, 3600;
        SELECT @name = @type, @who = @reader, @completed = COALESCE(@completed, 0), @failed = COALESCE(@failed, 0),
            @busy_ms = COALESCE(@busy_ms, 0), @waited_ms = COALESCE(@waited_ms, 0), @next_seconds = COALESCE(@next_seconds, 60);
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.save_report @name, @who, @now, @completed, @failed, @dead OUTPUT, @busy_ms, @waited_ms, @next_seconds;
        IF @completed > 0 OR @failed > 0 OR @dead > 0 OR @busy_ms > 0 OR @waited_ms > 0
            EXEC mq_internal.add_throughput @name, @who, @now, 0, @completed, @failed, @dead, @waited_ms, @busy_ms;
        IF @sent_at IS NULL OR @sent_at > @now
            SET @sent_at = @now;
        IF @sent > 0 AND @sent_at > DATEADD(HOUR, -24, @now)
            EXEC mq_internal.add_throughput @name, @who, @sent_at, @sent, 0, 0, 0, 0, 0;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT CAST(@now AS datetime2(7)) AS reported_at;
END;

-- report_consumer: report that a consumer is running, and what it did since its last report.
-- Arguments:   @consumer, @type (1 to 200 characters each), @report (a flat JSON object) with the counts since the last
--              report (0 to 1,000,000,000; default 0) completed, failed, dead (default: the dead letters are counted here)
--              and sent (messages sent in the minute of sent_at whose first attempt this consumer began), the milliseconds
--              busy_ms (in handlers, to 10,000,000,000) and waited_ms (from sending to the first attempt, to
--              10,000,000,000,000), sent_at (a time with its zone; default now), next_seconds (until the next report, 0 to
--              3,600; 0: the consumer stops; default 60), handling (what it handles now, a text of up to 4,000 characters:
--              an object with id and since per line; default nothing)
-- Returns:     reported_at: the time of this report
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; no two consumers write the same row. It waits at most a second for a transaction
--              that reports under the same name, and then fails with error 1222
-- Example:     EXEC mq.report_consumer N'worker-1', N'email', N'{"completed": 120, "failed": 3, "next_seconds": 10}';
CREATE OR ALTER PROCEDURE mq.report_consumer
    @consumer nvarchar(max),
    @type nvarchar(max),
    @report nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    SET LOCK_TIMEOUT 1000; -- for this call only
    -- In microseconds, because drivers have no more digits: a caller can find the row by the time that it read.
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(6) = SYSUTCDATETIME();
    DECLARE @name nvarchar(400), @who nvarchar(400);
    DECLARE @completed bigint, @failed bigint, @dead bigint, @busy_ms bigint, @waited_ms bigint, @sent bigint, @next_seconds bigint;
    DECLARE @read TABLE (name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, value nvarchar(max));
    DECLARE @sent_at datetime2(7), @known nvarchar(max) = N'{"completed": [0, 1000000000], "failed": [0, 1000000000],
        "dead": [0, 1000000000], "busy_ms": [0, 10000000000], "waited_ms": [0, 10000000000000], "sent": [0, 1000000000],
        "sent_at": "time", "next_seconds": [0, 3600], "handling": "text"}', @handling nvarchar(max);
    BEGIN TRY
        EXEC mq_internal.require_name 'consumer', @consumer, 0;
        EXEC mq_internal.require_name 'type', @type, 0;
        EXEC mq_internal.require_options @report, N'report', @known;
        INSERT INTO @read (name, value) SELECT name, value FROM mq_internal.read_options(@report, @known);
        SELECT @name = @type, @who = @consumer,
            @completed = COALESCE(CAST((SELECT value FROM @read WHERE name = N'completed') AS bigint), 0),
            @failed = COALESCE(CAST((SELECT value FROM @read WHERE name = N'failed') AS bigint), 0),
            @dead = CAST((SELECT value FROM @read WHERE name = N'dead') AS bigint),
            @busy_ms = COALESCE(CAST((SELECT value FROM @read WHERE name = N'busy_ms') AS bigint), 0),
            @waited_ms = COALESCE(CAST((SELECT value FROM @read WHERE name = N'waited_ms') AS bigint), 0),
            @sent = COALESCE(CAST((SELECT value FROM @read WHERE name = N'sent') AS bigint), 0),
            @sent_at = CAST((SELECT value FROM @read WHERE name = N'sent_at') AS datetime2(7)),
            @next_seconds = COALESCE(CAST((SELECT value FROM @read WHERE name = N'next_seconds') AS bigint), 60),
            @handling = (SELECT value FROM @read WHERE name = N'handling');
        IF DATALENGTH(@handling) > 8000
            EXEC mq_internal.raise_error 'invalid_argument', N'handling: must be at most 4,000 characters';
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.save_report @name, @who, @now, @completed, @failed, @dead OUTPUT, @busy_ms, @waited_ms, @next_seconds, @handling;
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

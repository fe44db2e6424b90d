-- throughput: what consumers report per minute and type: messages sent, completed, failed and dead.
-- Arguments:   @type (1 to 200 characters; NULL: all), @since (UTC, a time in the first minute; NULL: an hour ago;
--              reports are kept for 24 hours)
-- Returns:     type, minute_at, sent (messages sent in this minute that have been claimed), completed, failed (attempts,
--              including those that made a dead letter), dead, waited_ms (from sending to the first attempt), busy_ms (in
--              handlers); no row for a minute without figures; a sum ends at 10^18
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks; without READ_COMMITTED_SNAPSHOT it reads uncommitted reports
-- Example:     EXEC mq.throughput N'email';
CREATE OR ALTER PROCEDURE mq.throughput
    @type nvarchar(max) = NULL,
    @since datetime2(7) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @name nvarchar(400), @most bigint = 1000000000000000000;
    EXEC mq_internal.require_name 'type', @type, 1;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT @name = @type, @since = COALESCE(@since, DATEADD(HOUR, -1, SYSUTCDATETIME()));
    -- Includes the minute of @since; the smallest datetime2 has no minute before it.
    IF @since > '1900-01-01'
        SET @since = DATEADD(MINUTE, -1, @since);
    -- The reports of many consumers may add up to more than a bigint.
    SELECT t.type, t.minute AS minute_at, CAST(IIF(t.sent > @most, @most, t.sent) AS bigint) AS sent,
        CAST(IIF(t.completed > @most, @most, t.completed) AS bigint) AS completed,
        CAST(IIF(t.failed > @most, @most, t.failed) AS bigint) AS failed,
        CAST(IIF(t.dead > @most, @most, t.dead) AS bigint) AS dead,
        CAST(IIF(t.waited_ms > @most, @most, t.waited_ms) AS bigint) AS waited_ms,
        CAST(IIF(t.busy_ms > @most, @most, t.busy_ms) AS bigint) AS busy_ms
    FROM (
        SELECT type, minute, SUM(CAST(sent AS decimal(38))) AS sent, SUM(CAST(completed AS decimal(38))) AS completed,
            SUM(CAST(failed AS decimal(38))) AS failed, SUM(CAST(dead AS decimal(38))) AS dead,
            SUM(CAST(waited_ms AS decimal(38))) AS waited_ms, SUM(CAST(busy_ms AS decimal(38))) AS busy_ms
        FROM mq.report
        WHERE minute > @since AND (@name IS NULL OR type = @name)
        GROUP BY type, minute
    ) AS t
    ORDER BY t.type, t.minute;
END;

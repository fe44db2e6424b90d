-- throughput: what consumers report per minute and type: messages sent, completed, failed and dead.
-- Arguments:   @type (1 to 200 characters; NULL: all), @since (UTC, a time in the first minute; NULL: an hour ago;
--              reports are kept for 24 hours), @size (1 to 10,000; NULL: 10,000), @after_minute and @after_type (the
--              last row of the page before; NULL: from the first)
-- Returns:     one row per minute and type, by minute and type: type, minute, sent (messages sent in this minute that have been claimed), completed, failed (attempts,
--              including those that made a dead letter), dead, waited_ms (from sending to the first attempt), busy_ms (in
--              handlers), each at most 9,223,372,036,854,775,807; no row for a minute without figures
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks; without READ_COMMITTED_SNAPSHOT it reads uncommitted reports
-- Example:     EXEC mq.throughput N'email';

CREATE OR ALTER PROCEDURE mq.throughput
    @type nvarchar(max) = NULL,
    @since datetime2(7) = NULL,
    @size bigint = NULL,
    @after_minute datetime2(7) = NULL,
    @after_type nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @name nvarchar(400), @last_type nvarchar(400), @most decimal(38, 0) = 9223372036854775807;
    EXEC mq.require_name 'type', @type, 1;
    EXEC mq.require_range 'size', @size, 1, 10000;
    EXEC mq.require_name 'after_type', @after_type, 1;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT @name = @type, @since = COALESCE(@since, DATEADD(HOUR, -1, SYSUTCDATETIME()));
    -- Includes the minute of @since; the smallest datetime2 has no minute before it.
    IF @since > '1900-01-01'
        SET @since = DATEADD(MINUTE, -1, @since);
    IF @after_minute > @since
        SET @since = DATEADD(MINUTE, -1, @after_minute);
    SELECT @size = COALESCE(@size, 10000), @last_type = COALESCE(@after_type, N'');
    SELECT s.type, s.minute,
        CAST(CASE WHEN s.sent > @most THEN @most ELSE s.sent END AS bigint) AS sent,
        CAST(CASE WHEN s.completed > @most THEN @most ELSE s.completed END AS bigint) AS completed,
        CAST(CASE WHEN s.failed > @most THEN @most ELSE s.failed END AS bigint) AS failed,
        CAST(CASE WHEN s.dead > @most THEN @most ELSE s.dead END AS bigint) AS dead,
        CAST(CASE WHEN s.waited_ms > @most THEN @most ELSE s.waited_ms END AS bigint) AS waited_ms,
        CAST(CASE WHEN s.busy_ms > @most THEN @most ELSE s.busy_ms END AS bigint) AS busy_ms
    FROM (
        SELECT TOP (@size) type, minute, SUM(CAST(sent AS decimal(38, 0))) AS sent,
            SUM(CAST(completed AS decimal(38, 0))) AS completed, SUM(CAST(failed AS decimal(38, 0))) AS failed,
            SUM(CAST(dead AS decimal(38, 0))) AS dead, SUM(CAST(waited_ms AS decimal(38, 0))) AS waited_ms,
            SUM(CAST(busy_ms AS decimal(38, 0))) AS busy_ms
        FROM mq.report
        WHERE minute > @since AND (@after_minute IS NULL OR minute > @after_minute OR (minute = @after_minute AND type > @last_type))
            AND (@name IS NULL OR type = @name)
        GROUP BY minute, type
        ORDER BY minute, type
    ) AS s
    ORDER BY s.minute, s.type;
END;
GO

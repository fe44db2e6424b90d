-- list_consumers: list the consumers with their start, their speed, and whether they still report.
-- Arguments:   @type (1 to 200 characters; NULL: all), @size (1 to 10,000; NULL: 10,000), @after_type and
--              @after_reader (the last row of the page before; NULL: from the first)
-- Returns:     one row per consumer and type, by type and reader: reader, type, status (working; silent: its report is
--              overdue; stopped), started_at, reported_at; since started_at: completed, failed, dead, busy_ms, waited_ms;
--              of the last full minute: rate_per_minute and load (the average number of running handlers)
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks; without READ_COMMITTED_SNAPSHOT it reads uncommitted reports
-- Example:     EXEC mq.list_consumers N'email';

CREATE OR ALTER PROCEDURE mq.list_consumers
    @type nvarchar(max) = NULL,
    @size bigint = NULL,
    @after_type nvarchar(max) = NULL,
    @after_reader nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @name nvarchar(400), @now datetime2(7) = SYSUTCDATETIME(), @base datetime2(7) = '2000-01-01', @minute datetime2(7);
    DECLARE @last_type nvarchar(400), @last_reader nvarchar(400);
    EXEC mq.require_name 'type', @type, 1;
    EXEC mq.require_range 'size', @size, 1, 10000;
    EXEC mq.require_name 'after_type', @after_type, 1;
    EXEC mq.require_name 'after_reader', @after_reader, 1;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT @size = COALESCE(@size, 10000), @last_type = COALESCE(@after_type, @type, N''), @last_reader = COALESCE(@after_reader, N'');
    SELECT @name = @type, @minute = DATEADD(MINUTE, DATEDIFF(MINUTE, @base, @now) - 1, @base);
    SELECT TOP (@size) c.reader, c.type, CASE WHEN c.due_at IS NULL THEN 'stopped' WHEN c.due_at < @now THEN 'silent' ELSE 'working' END AS status,
        c.started_at, c.reported_at, c.completed, c.failed, c.dead, c.busy_ms, c.waited_ms,
        CAST(COALESCE(t.completed + t.failed, 0) AS float) AS rate_per_minute,
        CAST(COALESCE(t.busy_ms, 0) AS float) / 60000 AS [load]
    FROM mq.consumer AS c
    LEFT JOIN mq.report AS t ON t.minute = @minute AND t.type = c.type AND t.reader = c.reader
    WHERE (@name IS NULL OR c.type = @name) AND c.type >= @last_type AND (c.type > @last_type OR c.reader > @last_reader)
    ORDER BY c.type, c.reader;
END;
GO

-- list_consumers: list the consumers with their start, their speed, and whether they still report.
-- Arguments:   @type (1 to 200 characters; NULL: all)
-- Returns:     one row per consumer and type, by type and reader: reader, type, status (working; silent: its report is
--              overdue; stopped), started_at, reported_at; since started_at: completed, failed, dead, busy_ms, waited_ms;
--              of the last full minute: rate_per_minute and load (the average number of running handlers)
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks; without READ_COMMITTED_SNAPSHOT it reads uncommitted reports
-- Example:     EXEC mq.list_consumers N'email';

CREATE OR ALTER PROCEDURE mq.list_consumers
    @type nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @name nvarchar(400), @now datetime2(7) = SYSUTCDATETIME(), @base datetime2(7) = '2000-01-01', @minute datetime2(7);
    EXEC mq.require_name 'type', @type, 1;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT @name = @type, @minute = DATEADD(MINUTE, DATEDIFF(MINUTE, @base, @now) - 1, @base);
    SELECT c.reader, c.type, CASE WHEN c.due_at IS NULL THEN 'stopped' WHEN c.due_at < @now THEN 'silent' ELSE 'working' END AS status,
        c.started_at, c.reported_at, c.completed, c.failed, c.dead, c.busy_ms, c.waited_ms,
        CAST(COALESCE(t.completed + t.failed, 0) AS float) AS rate_per_minute,
        CAST(COALESCE(t.busy_ms, 0) AS float) / 60000 AS [load]
    FROM mq.consumer AS c
    LEFT JOIN mq.report AS t ON t.minute = @minute AND t.type = c.type AND t.reader = c.reader
    WHERE @name IS NULL OR c.type = @name
    ORDER BY c.type, c.reader;
END;
GO

-- list_consumers: list the consumers with their start, their speed, and whether they still report.
-- Arguments:   @type (1 to 200 characters; NULL: all), @size (1 to 10,000; NULL: 20)
-- Returns:     up to @size rows, one per consumer and type, the silent ones first, then the working and the stopped
--              ones, by type and consumer: consumer, type, status (working; silent: its report is overdue; stopped), started_at, reported_at; since started_at: completed, failed, dead, busy_ms, waited_ms;
--              of the last full minute: rate_per_minute and busy (the average number of running handlers);
--              handling (the messages that it handled at its last report, a JSON object per line; NULL: none)
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks; without READ_COMMITTED_SNAPSHOT it reads uncommitted reports
-- Example:     EXEC mq.list_consumers N'email';
CREATE OR ALTER PROCEDURE mq.list_consumers
    @type nvarchar(max) = NULL,
    @size bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @name nvarchar(400), @now datetime2(7) = SYSUTCDATETIME(), @base datetime2(7) = '2000-01-01', @minute datetime2(7);
    EXEC mq_internal.require_name 'type', @type, 1;
    EXEC mq_internal.require_range 'size', @size, 1, 10000;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT @name = @type, @size = COALESCE(@size, 20), @minute = DATEADD(MINUTE, DATEDIFF(MINUTE, @base, @now) - 1, @base);
    SELECT c.consumer, c.type, CHOOSE(c.place, 'silent', 'working', 'stopped') AS status, c.started_at, c.reported_at, c.completed, c.failed, c.dead, c.busy_ms, c.waited_ms,
        COALESCE(CAST(t.completed AS float) + t.failed, 0) AS rate_per_minute,
        CAST(COALESCE(t.busy_ms, 0) AS float) / 60000 AS busy, c.handling
    FROM (
        SELECT TOP (@size) k.*, p.place
        FROM mq.consumer AS k
        CROSS APPLY (SELECT CASE WHEN k.due_at < @now THEN 1 WHEN k.due_at IS NOT NULL THEN 2 ELSE 3 END AS place) AS p
        WHERE @name IS NULL OR k.type = @name
        ORDER BY p.place, k.type, k.consumer
    ) AS c
    LEFT JOIN mq.report AS t ON t.minute = @minute AND t.type = c.type AND t.consumer = c.consumer
    ORDER BY c.place, c.type, c.consumer;
END;

-- throughput: what became of messages, per minute and type, as their consumers report it.
-- Arguments:   @type (NULL: all), @since (NULL: an hour ago; reports are kept for 24 hours)
-- Returns:     type, minute, sent (in that minute, of those claimed meanwhile), completed, failed (attempts, dead letters
--              included), dead, waited_ms (from sending to the first attempt) and busy_ms (time in handlers); no row for
--              a minute without any
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
    DECLARE @name nvarchar(400);
    EXEC mq.require_name 'type', @type, 1;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT @name = @type, @since = COALESCE(@since, DATEADD(HOUR, -1, SYSUTCDATETIME()));
    -- The minute that it lies in, too; there is none before the first one of all.
    IF @since > '1900-01-01'
        SET @since = DATEADD(MINUTE, -1, @since);
    SELECT type, minute, SUM(sent) AS sent, SUM(completed) AS completed, SUM(failed) AS failed, SUM(dead) AS dead,
        SUM(waited_ms) AS waited_ms, SUM(busy_ms) AS busy_ms
    FROM mq.report
    WHERE minute > @since AND (@name IS NULL OR type = @name)
    GROUP BY type, minute
    ORDER BY type, minute;
END;
GO

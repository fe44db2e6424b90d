-- queue_stats: what each queue holds; each number is exact up to 10,000 and stays there above, with capped = 1.
-- Arguments:   @type (NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds, capped, paused
-- Errors:      50002 invalid_argument
-- Transaction: reads only, never waits for locks, and never reads much more than 20,002 rows a number; where the database
--              does not keep versions it counts what is not committed
-- Example:     EXEC mq.queue_stats;

CREATE OR ALTER PROCEDURE mq.queue_stats
    @type nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @one nvarchar(400);
    EXEC mq.require_name 'type', @type, 1;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET @one = @type;
    IF @one IS NULL
        EXEC mq.stats_of_all @now;
    ELSE
        EXEC mq.stats_of_one @one, @now;
END;
GO

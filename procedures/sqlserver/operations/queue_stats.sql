-- queue_stats: count each queue's messages by state; above 10,000 ready, delayed and dead are estimates.
-- Arguments:   @type (1 to 200 characters; NULL: all that have a policy or a message)
-- Returns:     type, ready, delayed, active, expired, dead, oldest_ready_seconds (NULL: none is ready), estimated (1: ready,
--              delayed or dead is above 10,000; such a number is an estimate), paused (1: claims return nothing)
-- Errors:      50002 invalid_argument
-- Transaction: reads only, about 20,002 rows per number at most, and all claims; see estimate; never waits for locks; without READ_COMMITTED_SNAPSHOT
--              it counts uncommitted rows
-- Example:     EXEC mq.queue_stats;
CREATE OR ALTER PROCEDURE mq.queue_stats
    @type nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @one nvarchar(400);
    EXEC mq_internal.require_name 'type', @type, 1;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET @one = @type;
    IF @one IS NULL
        EXEC mq_internal.stats_of_all @now;
    ELSE
        EXEC mq_internal.stats_of_one @one, @now;
END;

-- list_queues: list the policies of queues.
-- Arguments:   @type (1 to 200 characters; NULL: all for which set_queue, pause or resume was called)
-- Returns:     one row per type with the columns of set_queue; a given @type without a policy returns the defaults
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks; without READ_COMMITTED_SNAPSHOT it reads uncommitted policies
-- Example:     EXEC mq.list_queues;
CREATE OR ALTER PROCEDURE mq.list_queues
    @type nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @name nvarchar(400), @one nvarchar(400);
    EXEC mq_internal.require_name 'type', @type, 1;
    SET @name = @type;
    IF EXISTS (SELECT * FROM sys.databases WHERE name = DB_NAME() AND is_read_committed_snapshot_on = 0)
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
    ELSE
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    -- Not from mq_internal.policy, which reads committed rows and would wait for an open set_queue. The type without a name holds
    -- the defaults.
    IF @name IS NOT NULL
        SET @one = CASE WHEN EXISTS (SELECT * FROM mq.queue WHERE type = @name) THEN @name ELSE N'' END;
    SELECT COALESCE(@name, type) AS type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete,
        CAST(ordered AS smallint) AS ordered, CAST(notify AS smallint) AS notify, max_active, rate, rate_seconds,
        group_max_active, group_rate, group_rate_seconds, CAST(paused AS smallint) AS paused, CAST(ring AS smallint) AS ring,
        CAST(fair AS smallint) AS fair, CAST(dead_stops_group AS smallint) AS dead_stops_group
    FROM mq.queue
    WHERE type = @one OR (@name IS NULL AND type <> N'')
    ORDER BY type;
END;

-- list_schedules: list the schedules with their last and next times.
-- Arguments:   @type (1 to 200 characters; NULL: all)
-- Returns:     name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at (NULL: the schedule has
--              stopped), last_at, last_id (NULL: nothing was sent yet); by name
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     EXEC mq.list_schedules N'report';

CREATE OR ALTER PROCEDURE mq.list_schedules
    @type nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: at a higher level, the locks of this read would stay until the caller's transaction ends.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @queue nvarchar(400);
    EXEC mq.require_name 'type', @type, 1;
    SET @queue = @type;
    SELECT name, type, cron, time_zone, body, headers, CAST(priority AS int) AS priority, group_key, CAST(overlap AS smallint) AS overlap,
        next_at, last_at, last_id
    FROM mq.schedule
    WHERE @queue IS NULL OR type = @queue
    ORDER BY name;
END;
GO

-- list_schedules: list the schedules with their last and next times.
-- Arguments:   @type (1 to 200 characters; NULL: all), @body_length (characters of each body and its headers, 0 to
--              16,777,216; NULL: all)
-- Returns:     name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at (NULL: the schedule has
--              stopped), last_at, last_id (NULL: nothing was sent yet); by name
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     EXEC mq.list_schedules N'report';
CREATE OR ALTER PROCEDURE mq.list_schedules
    @type nvarchar(max) = NULL,
    @body_length bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: no locks of this read stay
    -- The longest body.
    DECLARE @queue nvarchar(400), @length int = 16777216;
    EXEC mq_internal.require_name 'type', @type, 1;
    EXEC mq_internal.require_range 'body_length', @body_length, 0, 16777216;
    SELECT @queue = @type, @length = COALESCE(@body_length, @length);
    SELECT name, type, cron, time_zone, LEFT(body COLLATE Latin1_General_100_CI_AS_SC, @length) AS body,
        LEFT(headers COLLATE Latin1_General_100_CI_AS_SC, @length) AS headers, CAST(priority AS int) AS priority, group_key,
        CAST(overlap AS smallint) AS overlap, next_at, last_at, last_id
    FROM mq.schedule
    WHERE @queue IS NULL OR type = @queue
    ORDER BY name;
END;

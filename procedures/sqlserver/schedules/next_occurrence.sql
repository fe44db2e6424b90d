-- next_occurrence: the first time of a cron expression after a given time.
-- Arguments:   @cron (five fields, a short form such as @daily, or @every and 1 to 315,360,000 seconds), @after (in the
--              years 1970 to 2999; NULL: now), @time_zone (NULL: UTC)
-- Returns:     next_at; NULL when no date matches in the next 50 years
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     EXEC mq.next_occurrence N'30 2 * * MON-FRI', '2026-11-23T00:00:00', N'Romance Standard Time';
CREATE OR ALTER PROCEDURE mq.next_occurrence
    @cron nvarchar(max),
    @after datetime2(7) = NULL,
    @time_zone nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @zone nvarchar(400), @next_at datetime2(7);
    EXEC mq_internal.require_zone @time_zone;
    IF @after < '1970-01-01' OR @after >= '3000-01-01'
        EXEC mq_internal.raise_error 'invalid_argument', N'after: must be in the years 1970 to 2999';
    SELECT @zone = COALESCE(@time_zone, N'UTC'), @after = COALESCE(@after, SYSUTCDATETIME());
    EXEC mq_internal.next_time @cron, @after, @zone, @next_at OUTPUT;
    SELECT @next_at AS next_at;
END;

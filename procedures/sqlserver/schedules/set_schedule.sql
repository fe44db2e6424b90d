-- set_schedule: send a message at each time of a cron expression; a call with an existing name changes that schedule.
-- Arguments:   @name, @type, @cron (see next_occurrence), @body (up to 16 MiB), @options (a flat JSON object):
--              time_zone (default UTC), headers (a text of up to 64 KiB), priority (-32,768 to 32,767; 0), group_key,
--              overlap (1: a time is skipped while the last message is new; 0: also while it is active; 1); names and keys
--              have 1 to 200 characters
-- Returns:     created (1 when the schedule is new), next_at
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one name wait for each other
-- Example:     EXEC mq.set_schedule N'nightly', N'report', N'30 2 * * *', N'{}', N'{"time_zone": "Romance Standard Time"}';
--
-- A schedule with unchanged cron and time zone keeps its next time. So a program can call this at each start: no due time
-- is lost or repeated.
CREATE OR ALTER PROCEDURE mq.set_schedule
    @name nvarchar(max),
    @type nvarchar(max),
    @cron nvarchar(max),
    @body nvarchar(max),
    @options nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: a snapshot shows old rows
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @schedule nvarchar(400), @zone nvarchar(400), @next_at datetime2(7), @created smallint = 0;
    DECLARE @time_zone nvarchar(max), @headers nvarchar(max), @priority bigint, @group_key nvarchar(max), @overlap bigint;
    DECLARE @read TABLE (name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, value nvarchar(max));
    DECLARE @known nvarchar(max) = N'{"time_zone": "text", "headers": "text", "priority": [-32768, 32767], "group_key": "text",
        "overlap": [0, 1]}';
    BEGIN TRY
        EXEC mq_internal.require_name 'name', @name, 0;
        EXEC mq_internal.require_name 'type', @type, 0;
        EXEC mq_internal.require_body 'body', @body, 16777216, N'16 MiB (16,777,216 bytes)', 0;
        EXEC mq_internal.require_options @options, N'options', @known;
        INSERT INTO @read (name, value) SELECT name, value FROM mq_internal.read_options(@options, @known);
        SELECT @time_zone = (SELECT value FROM @read WHERE name = N'time_zone'), @headers = (SELECT value FROM @read WHERE name = N'headers'),
            @priority = CAST((SELECT value FROM @read WHERE name = N'priority') AS bigint),
            @group_key = (SELECT value FROM @read WHERE name = N'group_key'),
            @overlap = CAST((SELECT value FROM @read WHERE name = N'overlap') AS bigint);
        EXEC mq_internal.require_zone @time_zone;
        EXEC mq_internal.require_body 'headers', @headers, 65536, N'64 KiB (65,536 bytes)', 1;
        EXEC mq_internal.require_headers @headers;
        EXEC mq_internal.require_name 'group_key', @group_key, 1;
        SELECT @schedule = @name, @zone = COALESCE(@time_zone, N'UTC');
        EXEC mq_internal.next_time @cron, @now, @zone, @next_at OUTPUT;
        IF @next_at IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'cron: no date matches in the next 50 years';
        IF @own = 1
            BEGIN TRANSACTION;
        -- Of two first calls for a name, the second finds the row.
        EXEC mq_internal.wait_for_lock 'schedule', @schedule, N'';
        UPDATE mq.schedule
        SET type = @type,
            body = @body, headers = @headers, priority = COALESCE(@priority, 0), group_key = @group_key,
            overlap = COALESCE(@overlap, 1),
            next_at = CASE WHEN cron = @cron AND time_zone = @zone AND next_at IS NOT NULL THEN next_at ELSE @next_at END,
            moved_at = CASE WHEN cron = @cron AND time_zone = @zone AND next_at IS NOT NULL THEN moved_at ELSE @now END,
            cron = @cron, time_zone = @zone
        WHERE name = @schedule;
        IF @@ROWCOUNT = 0
        BEGIN
            INSERT INTO mq.schedule (name, type, cron, time_zone, body, headers, priority, group_key, overlap, next_at, moved_at)
            VALUES (@schedule, @type, @cron, @zone, @body, @headers, COALESCE(@priority, 0), @group_key, COALESCE(@overlap, 1), @next_at,
                @now);
            SET @created = 1;
        END;
        SELECT @next_at = next_at FROM mq.schedule WHERE name = @schedule;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @created AS created, @next_at AS next_at;
END;

-- send_occurrence: send a schedule's message and record it as the last one.
-- Arguments: @name (of a schedule whose row is locked), @run_at (when it was due)
-- Returns: @id
CREATE OR ALTER PROCEDURE mq_internal.send_occurrence
    @name nvarchar(400), @run_at datetime2(7), @id bigint OUTPUT
AS
BEGIN
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @type nvarchar(400), @body nvarchar(max), @headers nvarchar(max);
    DECLARE @priority smallint, @group_key nvarchar(400), @created smallint, @changed smallint;
    SELECT @type = type, @body = body, @headers = headers, @priority = priority, @group_key = group_key
    FROM mq.schedule
    WHERE name = @name;
    EXEC mq_internal.send_one @type, @body, @run_at, @priority, @group_key, NULL, NULL, @headers, N'schedule', NULL, @now,
        @id OUTPUT, @created OUTPUT, @changed OUTPUT;
    UPDATE mq.schedule SET last_at = @run_at, last_id = @id WHERE name = @name;
END;

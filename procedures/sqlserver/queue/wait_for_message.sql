-- wait_for_message: wait until a message is ready or the time is up; polls 20 times per second, less often if a poll takes
--                   long.
-- Arguments:   @type (1 to 200 characters), @seconds (0 to 3,600; NULL or 0: do not wait)
-- Returns:     ready (1: a message can be claimed; else 0), next_run_at (when the next delayed message or schedule is due,
--              the next lease expires, or a limit allows the next message; NULL: nothing is expected), reason (ready, empty,
--              delayed, paused, limited, blocked or unknown)
-- Errors:      50002 invalid_argument
-- Transaction: starts no transaction; inside the caller's it keeps that transaction open while it waits
-- Example:     EXEC mq.wait_for_message N'email', 30;
CREATE OR ALTER PROCEDURE mq.wait_for_message
    @type nvarchar(max),
    @seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: a snapshot does not see messages sent later, and READPAST skips locked rows.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @ready smallint, @now datetime2(7) = SYSUTCDATETIME(), @until datetime2(7), @left bigint;
    DECLARE @next datetime2(7), @reason varchar(7);
    EXEC mq_internal.require_name 'type', @type, 0;
    SET @name = @type;
    EXEC mq_internal.require_range 'seconds', @seconds, 0, 3600;
    SELECT @until = DATEADD(SECOND, CAST(COALESCE(@seconds, 0) AS int), @now), @left = COALESCE(@seconds, 0) * 1000;
    WHILE 1 = 1
    BEGIN
        SET @ready = mq_internal.is_ready(@name, @now);
        -- Also count the pauses: the clock may be set back.
        IF @ready = 1 OR @now >= @until OR @left <= 0
            BREAK;
        EXEC mq_internal.sleep @now, @left OUTPUT;
        SET @now = SYSUTCDATETIME();
    END;
    EXEC mq_internal.explain_wait @name, @now, @ready, @next OUTPUT, @reason OUTPUT;
    SELECT @ready AS ready, @next AS next_run_at, @reason AS reason;
END;

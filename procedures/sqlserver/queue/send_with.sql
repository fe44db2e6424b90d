-- send_with: send one message with options, which are a JSON object.
-- Arguments:   @type, @body (up to 16 MiB), @options (a flat JSON object): run_at (a time with its zone, from 1970 to ten
--              years ahead; default now), delay_seconds (0 to 315,360,000, instead of run_at), priority (-32,768 to 32,767,
--              smaller first; 0), group_key, dedup_key, on_conflict (keep, replace or postpone a live message that has the
--              same dedup_key; keep), max_attempts (1 to 1,000; the queue's), headers (a text of up to 64 KiB), source (the
--              application name); names and keys have 1 to 200 characters
-- Returns:     as send_message
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or is finishing a message with the same
--              dedup_key
-- Example:     EXEC mq.send_with N'email', N'{}', N'{"dedup_key": "a-1", "delay_seconds": 60}';
CREATE OR ALTER PROCEDURE mq.send_with
    @type nvarchar(max),
    @body nvarchar(max),
    @options nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @id bigint, @created smallint, @changed smallint, @state char(1) = 'N';
    DECLARE @run_at datetime2(7), @priority bigint, @group_key nvarchar(max), @dedup_key nvarchar(max), @max_attempts bigint,
        @headers nvarchar(max), @source nvarchar(max), @delay_seconds bigint, @on_conflict nvarchar(max);
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        EXEC mq_internal.send_options @options, @run_at OUTPUT, @priority OUTPUT, @group_key OUTPUT, @dedup_key OUTPUT,
            @max_attempts OUTPUT, @headers OUTPUT, @source OUTPUT, @delay_seconds OUTPUT, @on_conflict OUTPUT;
        EXEC mq_internal.require_message @body, @run_at OUTPUT, @priority, @group_key, @dedup_key, @max_attempts, @headers, @source,
            @delay_seconds, @on_conflict, @now;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.send_one @type, @body, @run_at, @priority, @group_key, @dedup_key, @max_attempts, @headers, @source, @on_conflict, @now,
            @id OUTPUT, @created OUTPUT, @changed OUTPUT;
        -- A session that waits for the key may have locked rows of the message: this read must not wait for it.
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
        IF @created = 0 AND @changed = 0
            SET @state = mq_internal.state_of(@id);
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @id AS id, @created AS created, @changed AS changed, @state AS state;
END;

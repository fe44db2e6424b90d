-- send_message: send one message with all options.
-- Arguments:   @type, @body (up to 16 MiB), @run_at (UTC, 1970 to ten years ahead; NULL: now), @priority (-32,768 to 32,767,
--              smaller first; NULL: 0), @group_key, @dedup_key, @max_attempts (1 to 1,000; NULL: the queue's), @headers (up
--              to 64 KiB), @source (NULL: the application name), @delay_seconds (0 to 315,360,000, instead of @run_at),
--              @on_conflict (keep, replace or postpone a live message that has the same dedup_key; NULL: keep); names and
--              keys have 1 to 200 characters
-- Returns:     id; created (1: new; 0: id is the live message that has this type and dedup_key); changed (1: that message
--              was replaced or postponed); state (of the message: N; A or E only if created is 0)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or is finishing a message with the same
--              dedup_key
-- Example:     EXEC mq.send_message N'email', N'{}', @dedup_key = N'a-1', @priority = -1;
CREATE OR ALTER PROCEDURE mq.send_message
    @type nvarchar(max),
    @body nvarchar(max),
    @run_at datetime2(7) = NULL,
    @priority bigint = NULL,
    @group_key nvarchar(max) = NULL,
    @dedup_key nvarchar(max) = NULL,
    @max_attempts bigint = NULL,
    @headers nvarchar(max) = NULL,
    @source nvarchar(max) = NULL,
    @delay_seconds bigint = NULL,
    @on_conflict nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @id bigint, @created smallint, @changed smallint, @state char(1) = 'N';
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
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

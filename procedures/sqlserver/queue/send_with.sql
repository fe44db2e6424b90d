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
    DECLARE @run_at datetime2(7), @priority bigint, @group_key nvarchar(max), @dedup_key nvarchar(max), @max_attempts bigint,
        @headers nvarchar(max), @source nvarchar(max), @delay_seconds bigint, @on_conflict nvarchar(max);
    EXEC mq_internal.send_options @options, @run_at OUTPUT, @priority OUTPUT, @group_key OUTPUT, @dedup_key OUTPUT,
        @max_attempts OUTPUT, @headers OUTPUT, @source OUTPUT, @delay_seconds OUTPUT, @on_conflict OUTPUT;
    EXEC mq.send_message @type, @body, @run_at, @priority, @group_key, @dedup_key, @max_attempts, @headers, @source, @delay_seconds,
        @on_conflict;
END;

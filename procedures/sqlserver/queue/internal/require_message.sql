-- require_message: check the arguments of one message except its type; NULL means the default where there is one.
-- Arguments: @body, @run_at, @priority, @group_key, @dedup_key, @max_attempts, @headers, @source, @delay_seconds,
--     @on_conflict (as for send_message); @now (when the call began)
-- Returns: @run_at: when the message is due, computed from @delay_seconds if that is given; NULL: now
--
-- NULL arguments are not checked: each check is a call, and most messages have few of these arguments.
CREATE OR ALTER PROCEDURE mq_internal.require_message
    @body nvarchar(max), @run_at datetime2(7) OUTPUT, @priority bigint, @group_key nvarchar(max),
    @dedup_key nvarchar(max), @max_attempts bigint, @headers nvarchar(max), @source nvarchar(max),
    @delay_seconds bigint, @on_conflict nvarchar(max), @now datetime2(7)
AS
BEGIN
    EXEC mq_internal.require_body 'body', @body, 16777216, N'16 MiB (16,777,216 bytes)', 0;
    -- Some client libraries cannot represent earlier years.
    IF @run_at > DATEADD(SECOND, 315360000, @now) OR @run_at < '19700101'
        EXEC mq_internal.raise_error 'invalid_argument', N'run_at: must be from 1970 to at most 315,360,000 seconds (ten years) ahead';
    IF @priority IS NOT NULL
        EXEC mq_internal.require_range 'priority', @priority, -32768, 32767;
    IF @group_key IS NOT NULL
        EXEC mq_internal.require_name 'group_key', @group_key, 1;
    IF @dedup_key IS NOT NULL
        EXEC mq_internal.require_name 'dedup_key', @dedup_key, 1;
    IF @max_attempts IS NOT NULL
        EXEC mq_internal.require_range 'max_attempts', @max_attempts, 1, 1000;
    IF @headers IS NOT NULL
    BEGIN
        EXEC mq_internal.require_body 'headers', @headers, 65536, N'64 KiB (65,536 bytes)', 1;
        EXEC mq_internal.require_headers @headers;
    END;
    IF @source IS NOT NULL
        EXEC mq_internal.require_name 'source', @source, 1;
    IF @delay_seconds IS NOT NULL
    BEGIN
        EXEC mq_internal.require_range 'delay_seconds', @delay_seconds, 0, 315360000;
        IF @run_at IS NOT NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'delay_seconds: must be NULL when run_at is given';
        IF @delay_seconds > 0
            SET @run_at = DATEADD(SECOND, CAST(@delay_seconds AS int), @now);
    END;
    -- Append a character: a comparison ignores trailing blanks.
    IF (@on_conflict + N'.') COLLATE Latin1_General_100_BIN2 NOT IN (N'keep.', N'replace.', N'postpone.')
        EXEC mq_internal.raise_error 'invalid_argument', N'on_conflict: must be keep, replace or postpone';
    IF @dedup_key IS NULL AND @on_conflict <> N'keep'
        EXEC mq_internal.raise_error 'invalid_argument', N'on_conflict: replace and postpone need a dedup_key';
END;

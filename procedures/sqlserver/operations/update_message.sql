-- update_message: change a message that is new: ready, delayed, or waiting for its retry.
-- Arguments:   @id (the message), @options (a flat JSON object with at least one of these): body (up to 16 MiB), run_at (a
--              time with its zone, from 1970 to ten years ahead; null: now), delay_seconds (0 to 315,360,000, instead of
--              run_at; null: now), priority (-32,768 to 32,767, smaller first; null: 0), max_attempts (1 to 1,000; null:
--              the queue's), headers (a text of up to 64 KiB; null: none)
-- Returns:     affected (1; 0 when it was not changed), state (N if it was changed; otherwise A: active, E: dead, C: archived,
--              N: another transaction is changing it; NULL: there is no such message; what another transaction has not
--              committed yet counts, because the call must not wait for it)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; never waits for a claim
-- Example:     EXEC mq.update_message 17, N'{"run_at": null, "priority": -1}';
--
-- A new time works like on_conflict replace: in an ordered queue the message no longer blocks its group. The attempts stay.
CREATE OR ALTER PROCEDURE mq.update_message
    @id bigint,
    @options nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @type nvarchar(400), @changed smallint = 0, @state char(1) = 'N', @rank smallint;
    DECLARE @run_at datetime2(7), @delay_seconds bigint, @priority bigint, @max_attempts bigint, @headers nvarchar(max), @body nvarchar(max) = N'';
    DECLARE @read TABLE (name nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, value nvarchar(max));
    DECLARE @known nvarchar(max) = N'{"body": "text", "run_at": "time", "delay_seconds": [0, 315360000], "priority": [-32768, 32767],
        "max_attempts": [1, 1000], "headers": "text"}';
    BEGIN TRY
        IF @id IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
        EXEC mq_internal.require_options @options, N'options', @known;
        INSERT INTO @read (name, value) SELECT name, value FROM mq_internal.read_options(@options, @known);
        IF NOT EXISTS (SELECT * FROM @read)
            EXEC mq_internal.raise_error 'invalid_argument',
                N'options: needs at least one of body, delay_seconds, headers, max_attempts, priority, run_at';
        -- An option that is not named leaves its variable unchanged.
        SELECT @body = value FROM @read WHERE name = N'body';
        SELECT @run_at = CAST(value AS datetime2(7)) FROM @read WHERE name = N'run_at';
        SELECT @delay_seconds = CAST(value AS bigint) FROM @read WHERE name = N'delay_seconds';
        SELECT @priority = COALESCE(CAST(value AS bigint), 0) FROM @read WHERE name = N'priority';
        SELECT @max_attempts = CAST(value AS bigint) FROM @read WHERE name = N'max_attempts';
        SELECT @headers = value FROM @read WHERE name = N'headers';
        EXEC mq_internal.require_message @body, @run_at OUTPUT, @priority, NULL, NULL, @max_attempts, @headers, NULL, @delay_seconds, NULL, @now;
        IF EXISTS (SELECT * FROM @read WHERE name IN (N'run_at', N'delay_seconds'))
            SET @run_at = COALESCE(@run_at, @now);
        SET @rank = @priority;
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @type = type FROM mq.message WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE id = @id;
        IF @type IS NOT NULL
            EXEC mq_internal.change_message @type, @id, N'update', @now, @run_at, @rank, NULL, NULL, @changed OUTPUT;
        IF @changed = 1 AND EXISTS (SELECT * FROM @read WHERE name = N'body')
            UPDATE mq.message SET body = @body WHERE id = @id;
        IF @changed = 1 AND EXISTS (SELECT * FROM @read WHERE name = N'headers')
            UPDATE mq.message SET headers = @headers WHERE id = @id;
        IF @changed = 1 AND EXISTS (SELECT * FROM @read WHERE name = N'max_attempts')
            UPDATE mq.message SET max_attempts = @max_attempts WHERE id = @id;
        -- For this call only: this read must not wait for a claim.
        SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
        IF @changed = 0
            SET @state = mq_internal.state_of(@id);
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT CAST(@changed AS bigint) AS affected, @state AS state;
END;

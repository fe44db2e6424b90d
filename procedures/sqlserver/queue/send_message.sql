-- send_message: send one message with all options.
-- Arguments:   @type, @body, @run_at (UTC; NULL: now), @priority (-32,768 to 32,767, smaller first; NULL: 0), @group_key,
--              @dedup_key, @max_attempts (1 to 1,000; NULL: the queue's), @headers (up to 64 KiB), @source (NULL: the
--              application name); names and keys have 1 to 200 characters
-- Returns:     id, created (0: a live message has this type and dedup_key, and id is that one's)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or is finishing the same dedup_key
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
    @source nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a limit of the session would hold in here too
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @ordered bit, @ring bit, @id bigint, @created smallint = 1;
    DECLARE @live bigint, @key nvarchar(400), @resource nvarchar(255);
    SET @run_at = COALESCE(@run_at, @now);
    BEGIN TRY
        EXEC mq.require_name 'type', @type, 0;
        SELECT @name = @type, @key = @dedup_key;
        EXEC mq.require_body 'body', @body, 16777216, N'16 MiB (16,777,216 bytes)', 0;
        IF @run_at > DATEADD(SECOND, 315360000, @now)
            EXEC mq.raise_error 'invalid_argument', N'run_at: must be at most 315,360,000 seconds (ten years) ahead';
        EXEC mq.require_range 'priority', @priority, -32768, 32767;
        EXEC mq.require_name 'group_key', @group_key, 1;
        EXEC mq.require_name 'dedup_key', @dedup_key, 1;
        EXEC mq.require_range 'max_attempts', @max_attempts, 1, 1000;
        EXEC mq.require_body 'headers', @headers, 65536, N'64 KiB (65,536 bytes)', 1;
        EXEC mq.require_name 'source', @source, 1;
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @ordered = ordered FROM mq.policy(@name);
        SET @ring = mq.is_ring(@name);
        -- Of two senders of one new key the second waits here, and not in front of the unique index, where it would get an error.
        -- No lock of a range: that would stop senders of other keys, and calls that complete a message with the next key. In a
        -- deadlock this lock is only not granted; the row lock that follows then meets the deadlock again.
        IF @key IS NOT NULL
        BEGIN
            SET @resource = mq.lock_name('dedup', @name, @key);
            EXEC sp_getapplock @Resource = @resource, @LockMode = 'Exclusive',
                @LockOwner = 'Transaction', @LockTimeout = -1;
            SELECT @live = id
            FROM mq.dedup WITH (READCOMMITTEDLOCK, ROWLOCK)
            WHERE type = @name AND dedup_key = @key;
        END;
        IF @live IS NOT NULL
            SELECT @id = @live, @created = 0;
        ELSE
        BEGIN
            INSERT INTO mq.message (run_at, created_at, priority, max_attempts, type, body, headers, group_key, dedup_key, source)
            VALUES (@run_at, @now, COALESCE(@priority, 0), @max_attempts, @name, @body, @headers, @group_key, @dedup_key,
                mq.reader_name(@source));
            SET @id = SCOPE_IDENTITY();
            IF @key IS NOT NULL
                INSERT INTO mq.dedup (type, dedup_key, id) VALUES (@name, @key, @id);
            IF @run_at > @now
                INSERT INTO mq.delayed (type, run_at, id, priority, attempts)
                VALUES (@name, @run_at, @id, COALESCE(@priority, 0), 0);
            ELSE
            BEGIN
                IF @ordered = 1
                    INSERT INTO mq.grouped (type, group_key, id, attempts) VALUES (@name, COALESCE(@group_key, N''), @id, 0);
                INSERT INTO mq.ready (type, priority, run_at, id, attempts)
                VALUES (@name, CASE @ring WHEN 1 THEN -32768 ELSE COALESCE(@priority, 0) END,
                    CASE @ring WHEN 1 THEN '0001-01-01' ELSE @run_at END, @id, 0);
                IF @run_at < @now
                    EXEC mq.lower_mark @name;
            END;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @id AS id, @created AS created;
END;
GO

-- send: send one message that is ready now.
-- Arguments:   @type (1 to 200 characters), @body (up to 16 MiB)
-- Returns:     id of the message
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the message can be claimed when it commits
-- Example:     EXEC mq.send N'email', N'{"to":"ada@example.org"}';
CREATE OR ALTER PROCEDURE mq.send
    @type nvarchar(max),
    @body nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @grouped bit, @ring bit, @fair bit, @id bigint;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        SET @name = @type;
        EXEC mq_internal.require_body 'body', @body, 16777216, N'16 MiB (16,777,216 bytes)', 0;
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @grouped = grouped, @ring = ring, @fair = fair FROM mq_internal.policy(@name);
        INSERT INTO mq.message (run_at, created_at, priority, type, body, source)
        VALUES (@now, @now, 0, @name, @body, mq_internal.consumer_name(NULL));
        SET @id = SCOPE_IDENTITY();
        IF @grouped = 1
            INSERT INTO mq.grouped (type, group_key, id, attempts) VALUES (@name, N'', @id, 0);
        INSERT INTO mq.ready (type, priority, lane, run_at, id, attempts)
        SELECT @name, priority, lane, run_at, @id, 0 FROM mq_internal.place(@ring, @fair, @grouped, 0, NULL, @now);
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @id AS id;
END;

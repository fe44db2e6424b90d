-- save_step: keep what a step of a message's handler has done; the same step again replaces its value.
-- Arguments:   @id (the message), @batch_key (the batch key that holds it), @step (1 to 200 characters), @value (up to 16
--              MiB; NULL: the step has no value)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument (10,000 steps a message), 50008 lease_lost, 50011 cancelled (nothing is
--              saved)
-- Transaction: joins the caller's: what the step did in this database commits together with its record. A call that finishes
--              the message waits for it; a lease of which less than half is left is extended
-- Example:     EXEC mq.save_step 17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', N'charge', N'{"charge":"ch_1"}';
CREATE OR ALTER PROCEDURE mq.save_step
    @id bigint,
    @batch_key nvarchar(max),
    @step nvarchar(max),
    @value nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: the call needs the current rows, and a snapshot shows old ones.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @most int = 10000, @count int, @name nvarchar(400);
    DECLARE @key uniqueidentifier, @lease_until datetime2(7), @seconds int;
    BEGIN TRY
        EXEC mq_internal.require_name 'step', @step, 0;
        SET @name = @step;
        EXEC mq_internal.require_body 'value', @value, 16777216, N'16 MiB (16,777,216 bytes)', 1;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.hold_message @id, @batch_key, @key OUTPUT, @lease_until OUTPUT, @seconds OUTPUT;
        -- The message's lock keeps others away from its steps.
        UPDATE mq.step SET step_value = @value, saved_at = SYSUTCDATETIME() WHERE id = @id AND step = @name;
        IF @@ROWCOUNT = 0
        BEGIN
            SELECT @count = COUNT(*) FROM mq.step WHERE id = @id;
            IF @count >= @most
                EXEC mq_internal.raise_error 'invalid_argument', N'step: a message has at most 10,000 steps';
            INSERT INTO mq.step (id, saved_at, step, step_value) VALUES (@id, SYSUTCDATETIME(), @name, @value);
        END;
        -- Not at each step: a heartbeat waits for a transaction that has extended the lease.
        IF @lease_until < DATEADD(MILLISECOND, 500 * @seconds, SYSUTCDATETIME())
            UPDATE mq.batch SET lease_until = DATEADD(SECOND, lease_seconds, SYSUTCDATETIME()) WHERE batch_key = @key;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT CAST(1 AS bigint) AS affected;
END;

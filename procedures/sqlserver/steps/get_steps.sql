-- get_steps: the steps that handlers of a message have saved, in this attempt and before it.
-- Arguments:   @id (the message), @batch_key (the batch key that holds it)
-- Returns:     step, step_value, saved_at; in the order in which they were saved first
-- Errors:      50002 invalid_argument, 50008 lease_lost, 50011 cancelled
-- Transaction: joins the caller's; a call that finishes the message waits for it
-- Example:     EXEC mq.get_steps 17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2';
CREATE OR ALTER PROCEDURE mq.get_steps
    @id bigint,
    @batch_key nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: the call needs the current rows, and a snapshot shows old ones.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @key uniqueidentifier, @lease_until datetime2(7), @seconds int;
    BEGIN TRY
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.hold_message @id, @batch_key, @key OUTPUT, @lease_until OUTPUT, @seconds OUTPUT;
        SELECT step, step_value, saved_at FROM mq.step WHERE id = @id ORDER BY n;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

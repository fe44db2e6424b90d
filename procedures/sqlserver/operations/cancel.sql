-- cancel: delete one new or dead message, or cancel the attempt of an active one.
-- Arguments:   @id (the message)
-- Returns:     affected (1; 0 when nothing changed), state (before the call: N or E: it is deleted; A: it is marked, and deleted
--              when its attempt ends; C: archived; N or E with affected 0: another transaction is claiming or changing
--              it; NULL: there is no such message)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for a call that is changing the message or ending its attempt, and for an open step
-- Example:     EXEC mq.cancel 17;
CREATE OR ALTER PROCEDURE mq.cancel
    @id bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @count bigint, @state char(1);
    BEGIN TRY
        IF @id IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.cancel_one @id, @count OUTPUT, @state OUTPUT;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected, @state AS state;
END;

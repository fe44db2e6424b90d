-- pause: stop the claims of a queue; claimed messages can still be finished, and sending continues.
-- Arguments:   @type (1 to 200 characters)
-- Returns:     affected (1; 0 when the queue was already paused), known (0: nothing had this name)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one type wait for each other; without READ_COMMITTED_SNAPSHOT claims of the
--              type wait until the transaction ends
-- Example:     EXEC mq.pause N'email';
CREATE OR ALTER PROCEDURE mq.pause
    @type nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: the call needs the current rows, and a snapshot shows old ones.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @count bigint, @known smallint;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        SET @name = @type;
        IF @own = 1
            BEGIN TRANSACTION;
        SET @known = mq_internal.is_known(@name);
        EXEC mq_internal.add_queue @name;
        UPDATE mq.queue SET paused = 1 WHERE type = @name AND paused = 0;
        SET @count = @@ROWCOUNT;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected, @known AS known;
END;

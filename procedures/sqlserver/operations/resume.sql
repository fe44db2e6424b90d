-- resume: allow the claims of a paused queue again.
-- Arguments:   @type (1 to 200 characters)
-- Returns:     affected (1; 0 when the queue was not paused), known (0: nothing had this name)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one type wait for each other; without READ_COMMITTED_SNAPSHOT claims of the
--              type wait until the transaction ends
-- Example:     EXEC mq.resume N'email';
CREATE OR ALTER PROCEDURE mq.resume
    @type nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: the call needs the current rows, and a snapshot shows old ones.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @count bigint = 0, @known smallint;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        SET @name = @type;
        IF @own = 1
            BEGIN TRANSACTION;
        SET @known = mq_internal.is_known(@name);
        -- After pause_all the queue may have no row of its own.
        IF EXISTS (SELECT * FROM mq_internal.policy(N'') WHERE paused = 1)
            EXEC mq_internal.add_queue @name;
        -- Take the lock first: an update that checks the committed row would ignore an uncommitted pause instead of
        -- waiting for it.
        SELECT @count = 1 FROM mq.queue WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @name AND paused = 1;
        IF @count = 1
            UPDATE mq.queue SET paused = 0 WHERE type = @name;
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

-- cancel_key: cancel the live message that has a dedup_key, as cancel does.
-- Arguments:   @type, @dedup_key (1 to 200 characters each)
-- Returns:     affected, state (as from cancel; NULL: no live message has the key), id (the message that has the key, or had it)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for a call that is changing the message or ending its attempt, and for an open step
-- Example:     EXEC mq.cancel_key N'reminder', N'order-17';
CREATE OR ALTER PROCEDURE mq.cancel_key
    @type nvarchar(max),
    @dedup_key nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @count bigint = 0, @state char(1), @id bigint;
    DECLARE @name nvarchar(400), @key nvarchar(400);
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        EXEC mq_internal.require_name 'dedup_key', @dedup_key, 0;
        SELECT @name = @type, @key = @dedup_key;
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @id = id
        FROM mq.dedup WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (dedup_key_once))
        WHERE type = @name AND dedup_key = @key;
        IF @id IS NOT NULL
            EXEC mq_internal.cancel_one @id, @count OUTPUT, @state OUTPUT;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected, @state AS state, @id AS id;
END;

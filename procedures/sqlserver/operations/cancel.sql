-- cancel: delete one new or dead message.
-- Arguments:   @id (the message)
-- Returns:     count: 1; 0 when the message is active, is being claimed at this moment, or does not exist
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; never waits for a claim
-- Example:     EXEC mq.cancel 17;
CREATE OR ALTER PROCEDURE mq.cancel
    @id bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @type nvarchar(400), @count bigint = 0;
    DECLARE @items mq.items;
    BEGIN TRY
        IF @id IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL';
        IF @own = 1
            BEGIN TRANSACTION;
        SELECT @type = type FROM mq.message WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE id = @id;
        IF @type IS NOT NULL
        BEGIN
            INSERT INTO @items (id, attempts) VALUES (@id, 0);
            EXEC mq_internal.erase @type, @items, 'NE', @count OUTPUT;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS count;
END;

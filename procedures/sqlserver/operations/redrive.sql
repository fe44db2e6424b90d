-- redrive: retry one dead letter, with its attempts reset to 0.
-- Arguments:   @id (the message)
-- Returns:     affected: 1; 0 when the message is not a dead letter, or another call is changing it
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     EXEC mq.redrive 17;
CREATE OR ALTER PROCEDURE mq.redrive
    @id bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @type nvarchar(400), @count bigint = 0;
    DECLARE @gone TABLE (type nvarchar(400) NOT NULL);
    DECLARE @back mq.items;
    BEGIN TRY
        IF @id IS NULL
            EXEC mq_internal.raise_error 'invalid_argument', N'id: must not be NULL; redrive_all redrives all of a queue';
        IF @own = 1
            BEGIN TRANSACTION;
        -- Lock the message before its dead letter, as erase does: a message that is being cancelled is skipped.
        DELETE e
        OUTPUT deleted.type INTO @gone (type)
        FROM mq.message AS m WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
        INNER JOIN mq.dead AS e WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON e.id = m.id
        WHERE m.id = @id
        OPTION (FORCE ORDER, LOOP JOIN);
        SELECT @type = type, @count = 1 FROM @gone;
        IF @count = 1
        BEGIN
            INSERT INTO @back (id, attempts) VALUES (@id, 0);
            EXEC mq_internal.place_ready @type, @back;
            EXEC mq_internal.lower_mark @type;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected;
END;

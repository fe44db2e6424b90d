-- complete_batch: complete all messages that the batch key still holds.
-- Arguments:   @batch_key (the key that the claim returned)
-- Returns:     affected: messages completed
-- Errors:      50002 invalid_argument, 50008 lease_lost (the batch key holds nothing: roll back)
-- Transaction: joins the caller's
-- Example:     EXEC mq.complete_batch '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2';
CREATE OR ALTER PROCEDURE mq.complete_batch
    @batch_key nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: READPAST, which skips locked rows, is not allowed at SERIALIZABLE.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @key uniqueidentifier, @type nvarchar(400), @consumer nvarchar(400), @seconds int, @count bigint = 0;
    BEGIN TRY
        EXEC mq_internal.require_key @batch_key, @key OUTPUT;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.drop_batch @key, @type OUTPUT, @consumer OUTPUT, @seconds OUTPUT;
        IF @type IS NULL
            EXEC mq_internal.raise_error 'lease_lost',
                N'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim';
        EXEC mq_internal.complete_messages @key, NULL, @type, @consumer, @count OUTPUT;
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

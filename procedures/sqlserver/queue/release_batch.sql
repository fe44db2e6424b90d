-- release_batch: release all messages that the batch key still holds: they are ready again, and the attempt does not count.
-- Arguments:   @batch_key (the key that the claim returned)
-- Returns:     affected: messages released; 0 when the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits for a transaction that has saved a step
-- Example:     EXEC mq.release_batch '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2';
CREATE OR ALTER PROCEDURE mq.release_batch
    @batch_key nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @key uniqueidentifier, @type nvarchar(400), @consumer nvarchar(400), @seconds int, @count bigint = 0;
    BEGIN TRY
        EXEC mq_internal.require_key @batch_key, @key OUTPUT;
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.drop_batch @key, @type OUTPUT, @consumer OUTPUT, @seconds OUTPUT;
        IF @type IS NOT NULL
        BEGIN
            -- A handler's open transaction may have saved a step: others would not see it, and do its work again.
            SELECT @count = COUNT(*)
            FROM mq.claimed AS c
            INNER JOIN mq.message AS m WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) ON m.id = c.id
            WHERE c.batch_key = @key
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            EXEC mq_internal.put_back @key, @type, -1, @count OUTPUT;
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

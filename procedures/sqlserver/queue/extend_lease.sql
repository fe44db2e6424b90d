-- extend_lease: heartbeat: extend the lease of a batch to @seconds from now.
-- Arguments:   @batch_key, @seconds (1 to 86,400; NULL: the lease_seconds of the claim)
-- Returns:     affected: messages that the batch still holds; 0 when the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     EXEC mq.extend_lease '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 60;
CREATE OR ALTER PROCEDURE mq.extend_lease
    @batch_key nvarchar(max),
    @seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @key uniqueidentifier, @count bigint = 0, @lease int;
    BEGIN TRY
        EXEC mq_internal.require_key @batch_key, @key OUTPUT;
        EXEC mq_internal.require_range 'seconds', @seconds, 1, 86400;
        IF @own = 1
            BEGIN TRANSACTION;
        -- Lock the row first, then update it: an update of a row that this session has locked cannot deadlock.
        SELECT @lease = lease_seconds FROM mq.batch WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE batch_key = @key;
        IF @lease IS NOT NULL
        BEGIN
            UPDATE mq.batch
            SET lease_until = DATEADD(SECOND, CAST(COALESCE(@seconds, @lease) AS int), SYSUTCDATETIME())
            WHERE batch_key = @key;
            SELECT @count = COUNT(*) FROM mq.claimed WHERE batch_key = @key;
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

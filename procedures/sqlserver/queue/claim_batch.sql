-- claim_batch: claim up to @size ready messages of one type under one new batch key.
-- Arguments:   @type, @size (1 to 10,000; NULL: 1), @consumer (NULL: the application name), @lease_seconds (NULL: the queue's)
-- Returns:     the messages in order of priority, run_at, id, those of a ring as claim_wraparound returns them; no rows when
--              nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; never waits for another claim
-- Example:     EXEC mq.claim_batch N'email', 10, N'worker-1', 60;
CREATE OR ALTER PROCEDURE mq.claim_batch
    @type nvarchar(max),
    @size bigint = NULL,
    @consumer nvarchar(max) = NULL,
    @lease_seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 0;
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        EXEC mq_internal.require_name 'consumer', @consumer, 1;
        EXEC mq_internal.require_range 'lease_seconds', @lease_seconds, 1, 86400;
        SET @size = COALESCE(@size, 1);
        SET @consumer = mq_internal.consumer_name(@consumer);
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.claim @type, @size, @consumer, @lease_seconds;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

-- claim_wraparound: claim the next messages in order of id, round-robin: after the highest id, continue at the lowest.
-- Arguments:   @type, @size (1 to 10,000; NULL: 1), @consumer (NULL: the application name), @lease_seconds (NULL: the
--              queue's), @after_id (NULL: the position where this consumer stopped, as claim_batch does)
-- Returns:     the messages after @after_id in order of id, then those from the lowest id on; no message twice; no rows
--              when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50002 invalid_argument, 50003 wrong_kind (the queue is not declared a ring)
-- Transaction: joins the caller's; never waits for another claim
-- Example:     EXEC mq.claim_wraparound N'crawl', 10, N'worker-1';
CREATE OR ALTER PROCEDURE mq.claim_wraparound
    @type nvarchar(max),
    @size bigint = NULL,
    @consumer nvarchar(max) = NULL,
    @lease_seconds bigint = NULL,
    @after_id bigint = NULL
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
        SELECT @size = COALESCE(@size, 1), @consumer = mq_internal.consumer_name(@consumer);
        IF @own = 1
            BEGIN TRANSACTION;
        EXEC mq_internal.claim @type, @size, @consumer, @lease_seconds, 1, @after_id;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

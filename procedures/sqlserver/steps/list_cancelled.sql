-- list_cancelled: which messages of a batch were cancelled; for heartbeats.
-- Arguments:   @batch_key (the key that the claim returned)
-- Returns:     id; no row when none was cancelled, or the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: reads only; never waits for locks
-- Example:     EXEC mq.list_cancelled '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2';
CREATE OR ALTER PROCEDURE mq.list_cancelled
    @batch_key nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @key uniqueidentifier;
    EXEC mq_internal.require_key @batch_key, @key OUTPUT;
    SELECT c.id
    FROM mq.claimed AS c WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
    INNER JOIN mq.message AS m WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = c.id
    WHERE c.batch_key = @key AND m.cancelled_at IS NOT NULL
    ORDER BY c.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;

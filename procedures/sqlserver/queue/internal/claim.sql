-- claim: claim messages of a type that is not paused, and return them.
-- Arguments:   @type, @size, @reader, @lease_seconds (NULL: the policy's)
-- Returns:     the messages in order of priority, run_at, id; no rows when nothing is ready or the queue is paused
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     EXEC mq.claim N'email', 10, N'worker-1', 60;

CREATE OR ALTER PROCEDURE mq.claim
    @type nvarchar(400),
    @size int,
    @reader nvarchar(400),
    @lease_seconds int
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @paused bit, @count int = 0, @batch_key uniqueidentifier = NEWID();
    SELECT @paused = paused, @lease_seconds = COALESCE(@lease_seconds, lease_seconds) FROM mq.policy(@type);
    IF @paused = 0
        EXEC mq.pick @type, @size, 0, @batch_key, @count OUTPUT;
    IF @count > 0
        EXEC mq.hold @batch_key, @type, @reader, @lease_seconds;
    ELSE
        EXEC mq.no_messages;
END;
GO

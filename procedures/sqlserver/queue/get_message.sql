-- get_message: claim the first ready message, of a ring the next one, with the queue's lease.
-- Arguments:   @type (1 to 200 characters)
-- Returns:     one message; no row when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; never waits for another claim
-- Example:     EXEC mq.get_message 'email';
CREATE OR ALTER PROCEDURE mq.get_message
    @type nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    EXEC mq.claim_batch @type, 1;
END;

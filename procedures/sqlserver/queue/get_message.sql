-- get_message: claim the first ready message.
-- Arguments:   @type
-- Returns:     0 or 1 message
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; never waits for another claim
-- Example:     EXEC mq.get_message 'email';

CREATE OR ALTER PROCEDURE mq.get_message
    @type nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a limit of the session would hold in here too
    EXEC mq.claim_batch @type, 1;
END;
GO

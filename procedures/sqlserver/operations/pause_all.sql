-- pause_all: stop the claims of all queues, also of those that are first used later; see pause.
-- Arguments:   none
-- Returns:     changed: 1; 0 when all queues were already paused
-- Errors:      none
-- Transaction: joins the caller's; calls for one type wait for each other; without READ_COMMITTED_SNAPSHOT claims
--              wait until the transaction ends
-- Example:     EXEC mq.pause_all;
CREATE OR ALTER PROCEDURE mq.pause_all
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: the call needs the current rows, and a snapshot shows old ones.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @changed smallint;
    -- The row with an empty type holds the defaults: it stands for the queues without settings of their own. UPDLOCK: an
    -- update that checks a committed row would ignore an uncommitted change instead of waiting for it.
    UPDATE q SET paused = 1 FROM mq.queue AS q WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE q.paused = 0;
    SET @changed = CASE WHEN @@ROWCOUNT > 0 THEN 1 ELSE 0 END;
    SELECT @changed AS changed;
END;

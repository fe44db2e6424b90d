-- pause_all: stop the claims of all queues, also of those that are first used later; see pause.
-- Arguments:   none
-- Returns:     changed: 1; 0 when all queues were already paused
-- Errors:      none
-- Transaction: joins the caller's; calls for one type wait for each other; in a NO WAIT transaction they fail with a lock
--              conflict
-- Example:     SELECT * FROM mq_pause_all;
CREATE OR ALTER PROCEDURE mq_pause_all
RETURNS (changed smallint)
AS
BEGIN
    -- The row with an empty type holds the defaults: it stands for the queues without settings of their own.
    UPDATE mq_queue AS q SET q.paused = 1 WHERE q.paused = 0;
    changed = IIF(ROW_COUNT > 0, 1, 0);
    SUSPEND;
END

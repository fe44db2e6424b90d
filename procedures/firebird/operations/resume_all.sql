-- resume_all: allow the claims of all queues again, also of those that pause stopped.
-- Arguments:   none
-- Returns:     changed: 1; 0 when no queue was paused
-- Errors:      none
-- Transaction: joins the caller's; calls for one type wait for each other; in a NO WAIT transaction they fail with a lock
--              conflict
-- Example:     SELECT * FROM mq_resume_all;
CREATE OR ALTER PROCEDURE mq_resume_all
RETURNS (changed smallint)
AS
DECLARE v_type mq_name;
BEGIN
    -- The row with an empty type holds the defaults: it stands for the queues without settings of their own.
    UPDATE mq_queue AS q SET q.paused = 0 WHERE q.paused = 1;
    changed = IIF(ROW_COUNT > 0, 1, 0);
    FOR SELECT q.type FROM mq_queue AS q WHERE CHAR_LENGTH(q.type) > 0 INTO v_type DO
        EXECUTE PROCEDURE imq_wake(v_type);
    SUSPEND;
END

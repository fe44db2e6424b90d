-- pause: stop the claims of a queue; claimed messages can still be finished, and sending continues.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     affected (1; 0 when the queue was already paused), known (0: nothing had this name)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one type wait for each other; in a NO WAIT transaction they fail with a lock
--              conflict
-- Example:     SELECT * FROM mq_pause('email');

CREATE OR ALTER PROCEDURE mq_pause (
    p_type mq_argument
)
RETURNS (affected bigint, known smallint)
AS
BEGIN
    SELECT s.known FROM mq_set_queue(:p_type) AS s INTO known;
    UPDATE mq_queue AS q SET q.paused = 1 WHERE q.type = :p_type AND q.paused = 0;
    affected = ROW_COUNT;
    SUSPEND;
END

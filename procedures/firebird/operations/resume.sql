-- resume: allow the claims of a paused queue again.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     affected (1; 0 when the queue was not paused), known (0: nothing had this name)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one type wait for each other; in a NO WAIT transaction they fail with a lock
--              conflict
-- Example:     SELECT * FROM mq_resume('email');

CREATE OR ALTER PROCEDURE mq_resume (
    p_type mq_argument
)
RETURNS (affected bigint, known smallint)
AS
DECLARE v_type mq_name;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 0);
    known = imq_is_known(p_type);
    -- After pause_all the queue may have no row of its own.
    IF (EXISTS (SELECT * FROM mq_queue AS q WHERE q.type = '' AND q.paused = 1)) THEN
        SELECT s.type FROM mq_set_queue(:p_type) AS s INTO v_type;
    UPDATE mq_queue AS q SET q.paused = 0 WHERE q.type = :p_type AND q.paused = 1;
    affected = ROW_COUNT;
    EXECUTE PROCEDURE imq_wake(p_type);
    SUSPEND;
END

-- resume: claims go on after a pause.
-- Arguments:   p_type
-- Returns:     count (1: it was paused, 0: it was running already)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one type wait for each other, or fail with a lock conflict in a NO WAIT one
-- Example:     SELECT * FROM mq_resume('email');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_resume (
    p_type mq_argument
)
RETURNS (
    "COUNT" bigint
)
AS
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 0);
    UPDATE mq_queue AS q SET q.paused = 0 WHERE q.type = :p_type AND q.paused = 1;
    "COUNT" = ROW_COUNT;
    EXECUTE PROCEDURE mq_wake(p_type);
    SUSPEND;
END^

SET TERM ; ^

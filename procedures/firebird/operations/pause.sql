-- pause: claims return nothing until resume; what is claimed can be finished; sending goes on.
-- Arguments:   p_type
-- Returns:     count (1: it was running, 0: it was paused already)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one type wait for each other, or fail with a lock conflict in a NO WAIT one
-- Example:     SELECT * FROM mq_pause('email');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_pause (
    p_type mq_argument
)
RETURNS (
    "COUNT" bigint
)
AS
DECLARE v_type mq_name;
BEGIN
    SELECT s.type FROM mq_set_queue(:p_type) AS s INTO v_type;
    UPDATE mq_queue AS q SET q.paused = 1 WHERE q.type = :p_type AND q.paused = 0;
    "COUNT" = ROW_COUNT;
    SUSPEND;
END^

SET TERM ; ^

-- wait_to_repeat: wait a millisecond before a statement that another transaction was in the way of is tried again.
-- Arguments:   p_until (what the last call has returned; NULL: the first one)
-- Returns:     until: two seconds after the first call; NULL: they are over
--
-- The pause is needed: the engine (4.0, 5.0) can fail to undo a refused INSERT while another transaction undoes one, too.
-- It then keeps the row, even if the transaction rolls back.
CREATE OR ALTER PROCEDURE imq_wait_to_repeat (p_until timestamp)
RETURNS (until timestamp)
AS
DECLARE c_seconds integer = 2;
DECLARE v_again_at timestamp;
BEGIN
    v_again_at = DATEADD(1 MILLISECOND TO mq_utc_now());
    until = COALESCE(p_until, DATEADD(c_seconds SECOND TO v_again_at));
    IF (v_again_at NOT BETWEEN DATEADD(-c_seconds SECOND TO until) AND until) THEN
        until = NULL;
    ELSE
        WHILE (mq_utc_now() BETWEEN DATEADD(-1 MILLISECOND TO v_again_at) AND DATEADD(-0.1 MILLISECOND TO v_again_at)) DO
            p_until = NULL;
END

-- wait_moment: let the transaction go on that has what the caller waits for: it needs the processor too.
-- Arguments:   none
-- Returns:     nothing
-- Errors:      none
-- Transaction: one of its own, which ends at once
-- Example:     EXECUTE PROCEDURE mq_wait_moment;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_wait_moment
AS
DECLARE v_seen integer;
BEGIN
    -- Nothing sleeps in PSQL. This takes longer than another try.
    IN AUTONOMOUS TRANSACTION DO
        SELECT COUNT(*) FROM mq_stripe WHERE n = 0 INTO v_seen;
END^

SET TERM ; ^

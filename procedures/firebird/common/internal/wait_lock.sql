-- wait_lock: let the transaction go on that has a row which try_lock did not get.
-- Arguments:   those of try_lock, p_waits (how often the call has waited before), p_holder (the transaction that has the row, as
--              try_lock says)
-- Returns:     again: 1 when the engine is about to begin the caller's call again, and nothing else is to be done; else 0
-- Errors:      none
-- Transaction: one of its own, which ends at once
-- Example:     EXECUTE PROCEDURE mq_wait_lock('feed', NULL, 'orders', NULL, 0, v_holder) RETURNING_VALUES v_again;
--
-- Nothing sleeps in PSQL: this takes longer than another try, and the other transaction needs the processor too. wait_lock.4.sql and
-- wait_lock.5.sql are the bodies for Firebird 4.0 and 5.0.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_wait_lock (
    p_table varchar(13) CHARACTER SET ASCII,
    p_stripe integer,
    p_name mq_argument,
    p_consumer mq_name,
    p_waits integer,
    p_holder bigint
)
RETURNS (
    again integer
)
AS
DECLARE v_seen integer;
BEGIN
    IN AUTONOMOUS TRANSACTION DO
        SELECT COUNT(*) FROM mq_stripe WHERE n = 0 INTO v_seen;
    again = 0;
END^

SET TERM ; ^

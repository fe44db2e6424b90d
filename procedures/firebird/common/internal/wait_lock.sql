-- wait_lock: wait briefly for the transaction that holds a row which try_lock could not lock.
-- Arguments:   those of try_lock, p_waits (how often the call has already waited), p_holder (the transaction that has
--              locked the row, from try_lock)
-- Returns:     again: 1: the engine is about to restart the caller's call, so the caller does nothing else; else 0
-- Transaction: an autonomous one, which ends at once
--
-- PSQL has no sleep. An autonomous transaction takes longer than another try, and meanwhile the other transaction can use
-- the processor. wait_lock.4.sql and wait_lock.5.sql are the variants for Firebird 4.0 and 5.0.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_wait_lock (
    p_table varchar(13) CHARACTER SET ASCII, p_stripe integer, p_name mq_argument, p_consumer mq_name, p_waits integer,
    p_holder bigint
)
RETURNS (again integer)
AS
DECLARE v_seen integer;
BEGIN
    IN AUTONOMOUS TRANSACTION DO
        SELECT COUNT(*) FROM mq_stripe WHERE n = 0 INTO v_seen;
    again = 0;
END^
SET TERM ; ^

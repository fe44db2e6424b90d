-- wait_lock: let the transaction go on that has a row which try_lock did not get.
-- Arguments:   those of try_lock, p_waits (how often the call has waited before), p_holder (the transaction that has the row, as
--              try_lock says)
-- Returns:     again: 1 when the engine is about to begin the caller's call again, and nothing else is to be done; else 0
-- Errors:      none
-- Transaction: one of its own, which ends at once
-- Example:     EXECUTE PROCEDURE mq_wait_lock('feed', NULL, 'orders', NULL, 0, v_holder) RETURNING_VALUES v_again;
--
-- This is the body for Firebird 4.0, beside wait_lock.sql. There UPDATEs that meet a rollback end the server sooner or later. So
-- nobody tries again before the transaction that has the row has ended, which its commit number tells. For a moment at most: then
-- another look does no harm. wait_lock.5.sql is the body for Firebird 5.0.

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
DECLARE c_milliseconds integer = 100;
DECLARE v_until timestamp;
DECLARE v_waiting integer = 1;
DECLARE v_seen integer;
BEGIN
    v_until = DATEADD(c_milliseconds MILLISECOND TO mq_utc_now());
    WHILE (v_waiting = 1) DO
    BEGIN
        -- Nothing sleeps in PSQL: the other transaction needs the processor too.
        IN AUTONOMOUS TRANSACTION DO
            SELECT COUNT(*) FROM mq_stripe WHERE n = 0 INTO v_seen;
        v_waiting = IIF(RDB$GET_TRANSACTION_CN(p_holder) = 0
            AND mq_utc_now() BETWEEN DATEADD(-c_milliseconds MILLISECOND TO v_until) AND v_until, 1, 0);
    END
    again = 0;
END^

SET TERM ; ^

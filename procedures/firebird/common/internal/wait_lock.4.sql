-- wait_lock: wait briefly for the transaction that holds a row which try_lock could not lock.
-- This variant for Firebird 4.0 replaces wait_lock.sql. There UPDATEs that meet a rollback crash the server sooner or
-- later. So the caller does not try again before the other transaction has ended, which its commit number shows. The wait
-- is short: after it, another try is safe. wait_lock.5.sql is the variant for Firebird 5.0.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_wait_lock (
    p_table varchar(13) CHARACTER SET ASCII, p_stripe integer, p_name mq_argument, p_consumer mq_name, p_waits integer,
    p_holder bigint
)
RETURNS (again integer)
AS
DECLARE c_milliseconds integer = 100;
DECLARE v_until timestamp;
DECLARE v_waiting integer = 1;
DECLARE v_seen integer;
BEGIN
    v_until = DATEADD(c_milliseconds MILLISECOND TO mq_utc_now());
    WHILE (v_waiting = 1) DO
    BEGIN
        -- PSQL has no sleep: meanwhile the other transaction can use the processor.
        IN AUTONOMOUS TRANSACTION DO
            SELECT COUNT(*) FROM mq_stripe WHERE n = 0 INTO v_seen;
        v_waiting = IIF(RDB$GET_TRANSACTION_CN(p_holder) = 0
            AND mq_utc_now() BETWEEN DATEADD(-c_milliseconds MILLISECOND TO v_until) AND v_until, 1, 0);
    END
    again = 0;
END^
SET TERM ; ^

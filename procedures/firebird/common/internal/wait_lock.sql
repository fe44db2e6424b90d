-- wait_lock: wait briefly for the transaction that holds a row which try_lock could not lock.
-- Arguments:   those of try_lock, p_waits (how often the call has already waited), p_holder (the transaction that has
--              locked the row, from try_lock)
-- Returns:     again: 1: the engine is about to restart the caller's call, so the caller does nothing else; else 0
-- Transaction: an autonomous one, which ends at once
--
-- PSQL has no sleep. An autonomous transaction takes longer than another try, and meanwhile the other transaction can use
-- the processor.
--
-- On 4.0, UPDATEs that meet a rollback crash the server sooner or later. So there the caller does not try again before the
-- other transaction has ended, which its commit number shows. The wait is short: after it, another try is safe.
--
-- On 5.0, try_lock also skips a row that another transaction has locked and released since the call began. An autonomous
-- transaction detects this: it can lock the row. Then the call must restart to see the other's changes. To make the engine
-- restart it, the call updates a spare row that the autonomous transaction has just locked and that nobody else uses.
-- Without ReadConsistency this only changes the spare row, and the caller's next try_lock sees committed values.
CREATE OR ALTER PROCEDURE imq_wait_lock (
    p_table varchar(13) CHARACTER SET ASCII, p_stripe integer, p_name mq_argument, p_consumer mq_name, p_waits integer,
    p_holder bigint
)
RETURNS (again integer)
AS
DECLARE c_milliseconds integer = 100;
DECLARE v_until timestamp;
DECLARE v_waiting integer = 1;
-- Waits for a row whose stripe the caller has locked: a rollback is restoring that row, and afterwards it is free.
DECLARE c_waits integer = 50;
DECLARE c_turn integer = 50;
-- The first spare row; spare rows per connection; after how many rows connections share spare rows again; rows to try.
DECLARE c_spare integer = 20480;
DECLARE c_each integer = 8;
DECLARE c_apart integer = 4032;
DECLARE c_rows integer = 64;
DECLARE v_from integer; DECLARE v_spare integer; DECLARE v_locked integer;
DECLARE v_number bigint; DECLARE v_seen bigint;
BEGIN
    again = 0;
    /*!5 IN AUTONOMOUS TRANSACTION DO
    BEGIN
        IF (p_table = 'stripe' OR p_waits > c_waits) THEN
            EXECUTE PROCEDURE imq_try_lock(p_table, p_stripe, p_name, p_consumer) RETURNING_VALUES v_locked, v_number, v_seen;
        ELSE
            SELECT 0 FROM mq_stripe WHERE n = 0 INTO v_locked;
        IF (v_locked IS DISTINCT FROM 0) THEN
        BEGIN
            IF (p_table = 'stripe') THEN
                UPDATE mq_stripe SET turn_of = CURRENT_CONNECTION, turn_until = DATEADD(:c_turn MILLISECOND TO mq_utc_now())
                WHERE n = :p_stripe;
            v_from = c_spare + MOD(c_each * CURRENT_CONNECTION, c_apart);
            FOR SELECT n FROM mq_stripe WHERE n BETWEEN :v_from AND :v_from + :c_rows - 1 WITH LOCK SKIP LOCKED
                INTO v_spare AS CURSOR s
            DO
                LEAVE;
        END
    END
    IF (v_spare IS NOT NULL) THEN
    BEGIN
        UPDATE mq_stripe SET n = n WHERE n = :v_spare;
        again = 1 - ROW_COUNT;
    END
    EXIT; */
    v_until = DATEADD(c_milliseconds MILLISECOND TO mq_utc_now());
    WHILE (v_waiting = 1) DO
    BEGIN
        IN AUTONOMOUS TRANSACTION DO
            SELECT COUNT(*) FROM mq_stripe WHERE n = 0 INTO v_seen;
        v_waiting = 0;
        /*!4 IF (RDB$GET_TRANSACTION_CN(p_holder) = 0
            AND mq_utc_now() BETWEEN DATEADD(-c_milliseconds MILLISECOND TO v_until) AND v_until) THEN
            v_waiting = 1; */
    END
END

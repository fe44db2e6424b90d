-- wait_lock: wait briefly for the transaction that holds a row which try_lock could not lock.
-- This variant for Firebird 5.0 and later replaces wait_lock.sql. There try_lock also skips a row that another
-- transaction has locked and released since the call began. An autonomous transaction detects this: it can lock the row.
-- Then the call must restart to see the other's changes. To make the engine restart it, the call updates a spare row that
-- the autonomous transaction has just locked and that nobody else uses. Without ReadConsistency this only changes the
-- spare row, and the caller's next try_lock sees committed values.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_wait_lock (
    p_table varchar(13) CHARACTER SET ASCII, p_stripe integer, p_name mq_argument, p_consumer mq_name, p_waits integer,
    p_holder bigint
)
RETURNS (again integer)
AS
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
    IN AUTONOMOUS TRANSACTION DO
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
    again = 0;
    IF (v_spare IS NOT NULL) THEN
    BEGIN
        UPDATE mq_stripe SET n = n WHERE n = :v_spare;
        again = 1 - ROW_COUNT;
    END
END^
SET TERM ; ^

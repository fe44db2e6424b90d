-- try_lock: lock a row of the queue until the transaction ends, unless another transaction has locked it.
-- This variant for Firebird 4.0 replaces try_lock.sql: there the text of the error can be read and names the transaction
-- that has locked the row.
--
-- In a WAIT transaction the call waits. It reads the row first, and locks it only if the row has not changed: during a
-- rollback the engine can lock a row with rolled-back values, and these would stay. try_lock.5.sql is the variant for
-- Firebird 5.0.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_try_lock (
    p_table varchar(13) CHARACTER SET ASCII, p_stripe integer, p_name mq_argument, p_consumer mq_name
)
RETURNS (locked integer, number bigint, holder bigint)
AS
DECLARE v_until timestamp;
-- The engine's text before the number of the transaction.
DECLARE c_before varchar(20) CHARACTER SET ASCII = 'number is ';
DECLARE v_message varchar(2000) CHARACTER SET UTF8;
BEGIN
    IF (p_table = 'stripe') THEN
        UPDATE mq_stripe SET n = n WHERE n = :p_stripe RETURNING 1 INTO number;
    ELSE IF (p_table = 'batch') THEN
    BEGIN
        SELECT 1, lease_until FROM mq_batch WHERE batch_key = :p_name INTO number, v_until;
        UPDATE mq_batch SET lease_seconds = lease_seconds WHERE batch_key = :p_name AND lease_until = :v_until;
    END
    ELSE IF (p_table = 'limited') THEN
    BEGIN
        SELECT full_at FROM mq_limited WHERE type = :p_name INTO number;
        UPDATE mq_limited SET full_at = full_at WHERE type = :p_name AND full_at = :number;
    END
    ELSE IF (p_table = 'bucket') THEN
    BEGIN
        SELECT full_at FROM mq_bucket WHERE type = :p_name AND group_key = :p_consumer INTO number;
        UPDATE mq_bucket SET full_at = full_at WHERE type = :p_name AND group_key = :p_consumer AND full_at = :number;
    END
    locked = IIF(ROW_COUNT > 0, 1, IIF(number IS NULL, NULL, 0));
    IF (p_table STARTING WITH 'polled') THEN
        EXECUTE PROCEDURE imq_try_polled(p_table, p_name) RETURNING_VALUES locked, number;
    ELSE IF (p_table IN ('counter', 'feed', 'feed_consumer')) THEN
        EXECUTE PROCEDURE imq_try_feed(p_table, p_name, p_consumer) RETURNING_VALUES locked, number;
    number = IIF(locked = 1, number, NULL);
    WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
    BEGIN
        locked = 0;
        number = NULL;
        v_message = RDB$ERROR(MESSAGE);
        IF (POSITION(c_before, v_message) > 0) THEN
        BEGIN
            v_message = SUBSTRING(v_message FROM POSITION(c_before, v_message) + CHAR_LENGTH(c_before) FOR 20) || ASCII_CHAR(10);
            holder = CAST(LEFT(v_message, POSITION(ASCII_CHAR(10), v_message) - 1) AS bigint);
        END
    END
END^
SET TERM ; ^

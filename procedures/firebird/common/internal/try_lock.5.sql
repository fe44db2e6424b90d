-- try_lock: lock a row of the queue until the transaction ends, unless another transaction has locked it.
-- This variant for Firebird 5.0 and later replaces try_lock.sql. On 5.0.4, UPDATEs that meet other UPDATEs and rollbacks
-- crash the server sooner or later; SKIP LOCKED does not. It also skips a row that another transaction has locked and
-- released since this call began: locked is 0 then too.
SET TERM ^ ;
CREATE OR ALTER PROCEDURE imq_try_lock (
    p_table varchar(13) CHARACTER SET ASCII, p_stripe integer, p_name mq_argument, p_consumer mq_name
)
RETURNS (locked integer, number bigint, holder bigint)
AS
-- The longest turn of wait_lock, in milliseconds.
DECLARE c_turn integer = 50;
BEGIN
    IF (p_table = 'stripe') THEN
        FOR SELECT 1 AS one FROM mq_stripe
        WHERE n = :p_stripe
            AND (turn_until IS NULL OR turn_of = CURRENT_CONNECTION
                OR turn_until NOT BETWEEN mq_utc_now() AND DATEADD(:c_turn MILLISECOND TO mq_utc_now()))
        WITH LOCK SKIP LOCKED INTO number AS CURSOR a DO
            locked = 1;
    ELSE IF (p_table = 'batch') THEN
        FOR SELECT 1 AS one FROM mq_batch WHERE batch_key = :p_name WITH LOCK SKIP LOCKED INTO number AS CURSOR b DO
            locked = 1;
    ELSE IF (p_table = 'limited') THEN
        FOR SELECT full_at FROM mq_limited WHERE type = :p_name WITH LOCK SKIP LOCKED INTO number AS CURSOR h DO
            locked = 1;
    ELSE IF (p_table = 'bucket') THEN
        FOR SELECT full_at FROM mq_bucket
        WHERE type = :p_name AND group_key = :p_consumer
        WITH LOCK SKIP LOCKED INTO number AS CURSOR i DO
            locked = 1;
    ELSE IF (p_table STARTING WITH 'polled') THEN
        EXECUTE PROCEDURE imq_try_polled(p_table, p_name) RETURNING_VALUES locked, number;
    ELSE IF (p_table IN ('counter', 'feed', 'feed_consumer')) THEN
        EXECUTE PROCEDURE imq_try_feed(p_table, p_name, p_consumer) RETURNING_VALUES locked, number;
    IF (locked IS NULL AND (p_table = 'stripe'
        OR p_table = 'batch' AND EXISTS (SELECT * FROM mq_batch WHERE batch_key = :p_name)
        OR p_table = 'limited' AND EXISTS (SELECT * FROM mq_limited WHERE type = :p_name)
        OR p_table = 'bucket' AND EXISTS (SELECT * FROM mq_bucket WHERE type = :p_name AND group_key = :p_consumer))) THEN
        locked = 0;
END^
SET TERM ; ^

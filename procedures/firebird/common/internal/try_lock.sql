-- try_lock: lock a row of the queue until the transaction ends, unless another transaction has locked it.
-- Arguments:   p_table (stripe, batch, polled_batch, polled, counter, feed, feed_consumer, limited, bucket), p_stripe (n
--              of the row of mq_stripe), p_name (the key of any other row), p_consumer (of feed_consumer: the consumer;
--              of bucket: the group; else NULL)
-- Returns:     locked: 1; 0: another transaction has locked the row; NULL: no such row. number: of a counter or feed its
--              number, of a feed_consumer its position, of limited and bucket full_at, else 1; NULL: not locked. holder: on
--              4.0 the transaction that has locked the row; else NULL
--
-- On 5.0.4, UPDATEs that meet other UPDATEs and rollbacks crash the server sooner or later; SKIP LOCKED does not. It also
-- skips a row that another transaction has locked and released since this call began: locked is 0 then too.
--
-- Before 5.0, the call waits in a WAIT transaction. It reads the row first, and locks it only if the row has not changed:
-- during a rollback the engine can lock a row with rolled-back values, and these would stay.
CREATE OR ALTER PROCEDURE imq_try_lock (
    p_table varchar(13) CHARACTER SET ASCII, p_stripe integer, p_name mq_argument, p_consumer mq_name
)
RETURNS (locked integer, number bigint, holder bigint)
AS
-- The longest turn of wait_lock, in milliseconds.
DECLARE c_turn integer = 50;
-- The engine's text before the number of the transaction.
DECLARE c_before varchar(20) CHARACTER SET ASCII = 'number is ';
DECLARE v_message varchar(2000) CHARACTER SET UTF8;
DECLARE v_until timestamp;
BEGIN
    /*!5 IF (p_table = 'stripe') THEN
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
    ELSE
        EXECUTE PROCEDURE imq_try_feed(p_table, p_name, p_consumer) RETURNING_VALUES locked, number;
    IF (locked IS NULL AND (p_table = 'stripe'
        OR p_table = 'batch' AND EXISTS (SELECT * FROM mq_batch WHERE batch_key = :p_name)
        OR p_table = 'limited' AND EXISTS (SELECT * FROM mq_limited WHERE type = :p_name)
        OR p_table = 'bucket' AND EXISTS (SELECT * FROM mq_bucket WHERE type = :p_name AND group_key = :p_consumer))) THEN
        locked = 0;
    EXIT; */
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
        /*!4 v_message = RDB$ERROR(MESSAGE); */
        IF (POSITION(c_before, v_message) > 0) THEN
        BEGIN
            v_message = SUBSTRING(v_message FROM POSITION(c_before, v_message) + CHAR_LENGTH(c_before) FOR 20) || ASCII_CHAR(10);
            holder = CAST(LEFT(v_message, POSITION(ASCII_CHAR(10), v_message) - 1) AS bigint);
        END
    END
END

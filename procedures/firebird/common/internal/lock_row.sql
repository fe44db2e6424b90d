-- lock_row: lock a row of the queue until the transaction ends, and wait briefly while another transaction has it.
-- Arguments:   p_table (batch, polled_batch, polled, counter, feed, feed_consumer; stripe: locks the name of a row that
--              does not exist yet), p_name (its key), p_consumer (of feed_consumer; else NULL), p_milliseconds (how long
--              to try; NULL: two seconds, then an error)
-- Returns:     number: the row's number or position, 1 where it has none; NULL: there is no such row; -1: another
--              transaction held it for p_milliseconds
--
-- A NO WAIT transaction can wait only by trying again. A caller that keeps trying can lock a row while a rollback
-- restores it, and then rolled-back values can stay. So callers first lock a row of mq_stripe, which never changes, and
-- then the row itself. During a rollback the stripe may be free before the row is. From Firebird 4.0 on, the stripe also
-- makes the engine restart the whole call, which then sees a row that the other transaction has inserted.
--
-- On Firebird 3.0 a statement can miss a row that another transaction is changing, about once in 400,000 tries. So the
-- call searches for a row up to three times. On 4.0 an UPDATE finds no row when the engine is about to restart the call.
CREATE OR ALTER PROCEDURE imq_lock_row (
    p_table varchar(13) CHARACTER SET ASCII, p_name mq_argument, p_consumer mq_name, p_milliseconds integer = NULL
)
RETURNS (number bigint)
AS
DECLARE c_milliseconds integer = 2000;
DECLARE c_tries integer = 3;
DECLARE v_milliseconds integer; DECLARE v_stripe integer;
DECLARE v_table varchar(13) CHARACTER SET ASCII = 'stripe';
DECLARE v_tries integer = 0;
DECLARE v_locked integer;
DECLARE v_holder bigint;
DECLARE v_again integer = 0;
DECLARE v_waits integer = 0;
DECLARE v_until timestamp;
BEGIN
    v_milliseconds = COALESCE(p_milliseconds, c_milliseconds);
    -- Batches have their own rows of mq_stripe, because long work may hold them.
    v_stripe = IIF(p_table IN ('batch', 'polled_batch'), 24576 + MOD(ABS(HASH(p_name)), 16384),
        16384 + MOD(ABS(HASH(p_name || ASCII_CHAR(10) || COALESCE(p_consumer, ''))), 4096));
    WHILE (v_tries < c_tries AND v_again = 0) DO
    BEGIN
        EXECUTE PROCEDURE imq_try_lock(v_table, v_stripe, p_name, p_consumer) RETURNING_VALUES v_locked, number, v_holder;
        IF (v_locked = 1 AND v_table = p_table) THEN
            EXIT;
        IF (v_locked = 1) THEN
            v_table = p_table;
        ELSE IF (v_locked IS NULL) THEN
            v_tries = v_tries + 1;
        ELSE
        BEGIN
            v_until = COALESCE(v_until, DATEADD(v_milliseconds MILLISECOND TO mq_utc_now()));
            IF (mq_utc_now() BETWEEN DATEADD(-v_milliseconds MILLISECOND TO v_until) AND v_until) THEN
            BEGIN
                EXECUTE PROCEDURE imq_wait_lock(v_table, v_stripe, p_name, p_consumer, v_waits, v_holder)
                RETURNING_VALUES v_again;
                v_waits = v_waits + 1;
            END
            ELSE IF (p_milliseconds IS NOT NULL) THEN
            BEGIN
                number = -1;
                EXIT;
            END
            -- Another transaction holds it: this raises a lock conflict, or waits.
            ELSE IF (v_table = 'batch') THEN
                UPDATE mq_batch SET lease_seconds = lease_seconds WHERE batch_key = :p_name;
            ELSE
                UPDATE mq_stripe SET n = n WHERE n = :v_stripe;
        END
    END
    number = NULL;
END

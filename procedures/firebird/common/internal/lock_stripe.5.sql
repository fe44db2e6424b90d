-- lock_stripe: lock the row of mq_stripe that stands for a row until the transaction ends, waiting while another transaction has it.
-- Arguments:   p_table (counter, feed, feed_consumer, polled; stripe: the names of a row that is not there yet), p_name (its key),
--              p_consumer (of feed_consumer; else NULL), p_milliseconds (how long to try)
-- Returns:     again: 1 when the engine is about to begin the whole call again: nothing else is to be done; else 0
-- Errors:      the engine's lock conflict when another transaction keeps it for longer
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_lock_stripe('feed', 'orders', NULL, 2000) RETURNING_VALUES v_again;
--
-- This is the body for Firebird 5.0 and later, beside lock_stripe.sql. There (5.0.4) an UPDATE of what others change and roll back
-- ends the server sooner or later, if it meets them or makes the engine begin the call again: so nothing here meets another.
-- SKIP LOCKED passes over a row that another transaction has, and over one that another has locked and let go since this call
-- began. A transaction of its own tells the two apart. Then the call has to begin again, to see what the other has done: an UPDATE
-- of a spare row that the same transaction has just locked, and nobody else wants, makes it do so.
--
-- While a rollback goes on, the stripe may be free before the row is: so the row is locked here as well.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_lock_stripe (
    p_table varchar(13) CHARACTER SET ASCII,
    p_name mq_argument,
    p_consumer mq_name,
    p_milliseconds integer
)
RETURNS (
    again integer
)
AS
DECLARE c_spare integer = 20480;
DECLARE v_stripe integer;
DECLARE v_spare integer;
DECLARE v_seen bigint;
DECLARE v_locked integer = 0;
DECLARE v_free integer = 0;
DECLARE v_until timestamp;
BEGIN
    again = 0;
    v_stripe = 16384 + MOD(ABS(HASH(p_name || ASCII_CHAR(10) || COALESCE(p_consumer, ''))), 4096);
    WHILE (v_free = 0) DO
    BEGIN
        FOR SELECT n FROM mq_stripe WHERE n = :v_stripe AND :v_locked = 0 WITH LOCK SKIP LOCKED INTO v_seen AS CURSOR c DO
            v_locked = 1;
        IF (v_locked = 0) THEN
        BEGIN
            IN AUTONOMOUS TRANSACTION DO
                FOR SELECT n FROM mq_stripe WHERE n = :v_stripe WITH LOCK SKIP LOCKED INTO v_seen AS CURSOR s DO
                    FOR SELECT n FROM mq_stripe
                        WHERE n BETWEEN :c_spare + MOD(CURRENT_TRANSACTION, 900) AND :c_spare + MOD(CURRENT_TRANSACTION, 900) + 50
                        WITH LOCK SKIP LOCKED INTO v_spare AS CURSOR f
                    DO
                        LEAVE;
            IF (v_spare IS NOT NULL) THEN
            BEGIN
                UPDATE mq_stripe SET n = n WHERE n = :v_spare;
                again = 1;
                EXIT;
            END
        END
        ELSE IF (p_table = 'counter') THEN
        BEGIN
            FOR SELECT last_number FROM mq_counter WHERE name = :p_name WITH LOCK SKIP LOCKED INTO v_seen AS CURSOR r1 DO
                v_free = 1;
            IF (v_free = 0 AND NOT EXISTS (SELECT * FROM mq_counter WHERE name = :p_name)) THEN
                v_free = 1;
        END
        ELSE IF (p_table = 'feed') THEN
        BEGIN
            FOR SELECT last_number FROM mq_feed WHERE name = :p_name WITH LOCK SKIP LOCKED INTO v_seen AS CURSOR r2 DO
                v_free = 1;
            IF (v_free = 0 AND NOT EXISTS (SELECT * FROM mq_feed WHERE name = :p_name)) THEN
                v_free = 1;
        END
        ELSE IF (p_table = 'feed_consumer') THEN
        BEGIN
            FOR SELECT "POSITION" FROM mq_feed_consumer WHERE feed = :p_name AND consumer = :p_consumer WITH LOCK SKIP LOCKED INTO v_seen AS CURSOR r3 DO
                v_free = 1;
            IF (v_free = 0 AND NOT EXISTS (SELECT * FROM mq_feed_consumer WHERE feed = :p_name AND consumer = :p_consumer)) THEN
                v_free = 1;
        END
        ELSE IF (p_table = 'polled') THEN
        BEGIN
            FOR SELECT copies FROM mq_polled WHERE name = :p_name WITH LOCK SKIP LOCKED INTO v_seen AS CURSOR r4 DO
                v_free = 1;
            IF (v_free = 0 AND NOT EXISTS (SELECT * FROM mq_polled WHERE name = :p_name)) THEN
                v_free = 1;
        END
        ELSE
            v_free = 1;
        IF (v_free = 0) THEN
        BEGIN
            v_until = COALESCE(v_until, DATEADD(p_milliseconds MILLISECOND TO mq_utc_now()));
            IF (mq_utc_now() NOT BETWEEN DATEADD(-p_milliseconds MILLISECOND TO v_until) AND v_until) THEN
            BEGIN
                -- Another keeps the stripe: this ends in a lock conflict. Or the row: then the caller meets it.
                UPDATE mq_stripe SET n = n WHERE n = :v_stripe;
                v_free = 1;
            END
            ELSE IF (v_locked = 1) THEN
                EXECUTE PROCEDURE mq_wait_moment;
        END
    END
END^

SET TERM ; ^

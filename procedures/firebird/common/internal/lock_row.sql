-- lock_row: lock a row of the queue until the transaction ends, waiting for a moment while another transaction has it.
-- Arguments:   p_table (batch, polled_batch, counter, feed, feed_consumer; stripe: the names of a row that is not there yet),
--              p_name (its key), p_consumer (of feed_consumer; else NULL)
-- Returns:     number: the row's number or position, 1 for a batch; NULL when there is no such row
-- Errors:      the engine's lock conflict when another transaction keeps the row for longer than two seconds
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_lock_row('feed', 'orders', NULL) RETURNING_VALUES v_last;
--
-- In a NO WAIT transaction, trying again is the only way to wait.
--
-- Numbers and positions are locked by a row of mq_stripe first: see lock_stripe. Callers that wait by changing the row itself, again
-- and again, can meet it while a rollback restores it: then the number that was rolled back stays. And while a rollback goes on, the
-- stripe may be free before the row is: so the row is changed only if it still has the number that was read. From Firebird 4.0 on
-- the stripe also makes the engine begin the whole call again, which then sees a row that the other transaction has inserted.
--
-- On Firebird 3.0 a statement can miss a row that another transaction changes at this moment, about once in 400,000 tries. So a
-- row that is not found is looked for three times. On 4.0 an UPDATE finds nothing when the engine is about to begin the call again.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_lock_row (
    p_table varchar(13) CHARACTER SET ASCII,
    p_name mq_argument,
    p_consumer mq_name
)
RETURNS (
    number bigint
)
AS
DECLARE c_seconds integer = 2;
DECLARE c_tries integer = 3;
DECLARE v_until timestamp;
DECLARE v_tries integer = 0;
DECLARE v_again integer;
BEGIN
    IF (p_table NOT IN ('batch', 'polled_batch')) THEN
        EXECUTE PROCEDURE mq_lock_stripe(p_table, p_name, p_consumer, c_seconds * 1000) RETURNING_VALUES v_again;
    IF (p_table = 'stripe') THEN
        number = 1;
    IF (p_table = 'stripe' OR v_again = 1) THEN
        EXIT;
    WHILE (v_tries < c_tries) DO
    BEGIN
        number = NULL;
        IF (p_table = 'batch') THEN
            UPDATE mq_batch SET lease_seconds = lease_seconds WHERE batch_key = :p_name RETURNING 1 INTO number;
        ELSE IF (p_table = 'polled_batch') THEN
            UPDATE mq_polled_batch SET lease_seconds = lease_seconds WHERE batch_key = :p_name RETURNING 1 INTO number;
        ELSE IF (p_table = 'counter') THEN
        BEGIN
            SELECT last_number FROM mq_counter WHERE name = :p_name INTO number;
            UPDATE mq_counter SET last_number = last_number WHERE name = :p_name AND last_number = :number;
        END
        ELSE IF (p_table = 'feed') THEN
        BEGIN
            SELECT last_number FROM mq_feed WHERE name = :p_name INTO number;
            UPDATE mq_feed SET last_number = last_number WHERE name = :p_name AND last_number = :number;
        END
        ELSE
        BEGIN
            SELECT "POSITION" FROM mq_feed_consumer WHERE feed = :p_name AND consumer = :p_consumer INTO number;
            UPDATE mq_feed_consumer SET moved_at = moved_at
            WHERE feed = :p_name AND consumer = :p_consumer AND "POSITION" = :number;
        END
        v_tries = IIF(ROW_COUNT > 0, c_tries, v_tries + 1);
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            v_until = COALESCE(v_until, DATEADD(c_seconds SECOND TO mq_utc_now()));
            IF (mq_utc_now() NOT BETWEEN DATEADD(-c_seconds SECOND TO v_until) AND v_until) THEN
                EXCEPTION;
            EXECUTE PROCEDURE mq_wait_moment;
        END
    END
END^

SET TERM ; ^

-- lock_stripe: lock the row of mq_stripe that stands for a row until the transaction ends, waiting while another transaction has it.
-- Arguments:   p_table (counter, feed, feed_consumer, polled; stripe: the names of a row that is not there yet), p_name (its key),
--              p_consumer (of feed_consumer; else NULL), p_milliseconds (how long to try)
-- Returns:     again: 1 when the engine is about to begin the whole call again: nothing else is to be done; else 0
-- Errors:      the engine's lock conflict when another transaction keeps it for longer
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_lock_stripe('feed', 'orders', NULL, 2000) RETURNING_VALUES v_again;
--
-- In a NO WAIT transaction, trying again is the only way to wait. The row never changes: whatever a rollback does beside others that
-- want it, no number is lost.

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
DECLARE c_tries integer = 3;
DECLARE v_tries integer = 0;
DECLARE v_stripe integer;
DECLARE v_until timestamp;
BEGIN
    again = 0;
    v_stripe = 16384 + MOD(ABS(HASH(p_name || ASCII_CHAR(10) || COALESCE(p_consumer, ''))), 4096);
    -- On Firebird 3.0 a statement can miss a row that another transaction changes at this moment.
    WHILE (v_tries < c_tries) DO
    BEGIN
        UPDATE mq_stripe SET n = n WHERE n = :v_stripe;
        v_tries = IIF(ROW_COUNT > 0, c_tries, v_tries + 1);
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            v_until = COALESCE(v_until, DATEADD(p_milliseconds MILLISECOND TO mq_utc_now()));
            IF (mq_utc_now() NOT BETWEEN DATEADD(-p_milliseconds MILLISECOND TO v_until) AND v_until) THEN
                EXCEPTION;
            EXECUTE PROCEDURE mq_wait_moment;
        END
    END
END^

SET TERM ; ^

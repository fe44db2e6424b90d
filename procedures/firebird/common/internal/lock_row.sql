-- lock_row: lock a row of the queue until the transaction ends, waiting for a moment while another transaction has it.
-- Arguments:   p_table (batch, polled_batch, counter, feed, feed_consumer; stripe: no row of these names, which is to be
--              inserted), p_name (its key), p_consumer (of feed_consumer; else NULL)
-- Returns:     number: the row's number or position, 1 for a batch; NULL when there is no such row
-- Errors:      the engine's lock conflict when another transaction keeps the row for longer than two seconds
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_lock_row('feed', 'orders', NULL) RETURNING_VALUES v_last;
--
-- In a NO WAIT transaction, trying again is the only way to wait.
-- From Firebird 4.0 on a statement does not see what others have inserted since it began, and an INSERT of the same key would
-- fail. A caller that locks the names first meets the other's lock instead, and then the engine begins the whole call again.

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
DECLARE v_until timestamp;
DECLARE v_tries integer = 0;
DECLARE v_done integer = 0;
DECLARE v_seen integer;
BEGIN
    WHILE (v_done = 0) DO
    BEGIN
        IF (p_table = 'batch') THEN
            UPDATE mq_batch SET lease_seconds = lease_seconds WHERE batch_key = :p_name;
        ELSE IF (p_table = 'polled_batch') THEN
            UPDATE mq_polled_batch SET lease_seconds = lease_seconds WHERE batch_key = :p_name;
        ELSE IF (p_table = 'counter') THEN
            UPDATE mq_counter SET last_number = last_number WHERE name = :p_name RETURNING last_number INTO number;
        ELSE IF (p_table = 'feed') THEN
            UPDATE mq_feed SET last_number = last_number WHERE name = :p_name RETURNING last_number INTO number;
        ELSE IF (p_table = 'feed_consumer') THEN
            UPDATE mq_feed_consumer SET moved_at = moved_at WHERE feed = :p_name AND consumer = :p_consumer
            RETURNING "POSITION" INTO number;
        ELSE
            UPDATE mq_stripe SET n = n
            WHERE n = MOD(ABS(HASH(:p_name || ASCII_CHAR(10) || COALESCE(:p_consumer, ''))), 16384);
        -- Not RETURNING 1: 3.0 returns nothing for a row that another transaction has changed since this statement began.
        IF (p_table IN ('batch', 'polled_batch') AND ROW_COUNT > 0) THEN
            number = 1;
        v_done = 1;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            v_until = COALESCE(v_until, DATEADD(c_seconds SECOND TO mq_utc_now()));
            IF (mq_utc_now() NOT BETWEEN DATEADD(-c_seconds SECOND TO v_until) AND v_until) THEN
                EXCEPTION;
            v_tries = v_tries + 1;
            -- Something that takes longer than another try: whoever has the row needs the processor too.
            IF (v_tries > 200) THEN
                IN AUTONOMOUS TRANSACTION DO
                    SELECT COUNT(*) FROM mq_stripe WHERE n = 0 INTO v_seen;
        END
    END
END^

SET TERM ; ^

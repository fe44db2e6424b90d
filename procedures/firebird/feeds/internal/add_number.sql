-- add_number: insert a counter, or a consumer's position, that lock_row did not find.
-- Arguments:   p_table (counter or feed_consumer), p_name (of the counter or the feed), p_consumer (NULL for a counter),
--              p_number
-- Transaction: joins the caller's, which has locked the row of mq_stripe
--
-- During a rollback the stripe may be free before the key is.
CREATE OR ALTER PROCEDURE imq_add_number (
    p_table varchar(13) CHARACTER SET ASCII, p_name mq_name, p_consumer mq_name, p_number bigint
)
AS
DECLARE c_seconds integer = 2;
DECLARE v_until timestamp;
DECLARE v_again integer;
DECLARE v_done integer = 0;
BEGIN
    WHILE (v_done = 0) DO
    BEGIN
        IF (p_table = 'counter') THEN
            INSERT INTO mq_counter (name, last_number) VALUES (:p_name, :p_number);
        ELSE
            INSERT INTO mq_feed_consumer (feed, consumer, "POSITION", moved_at)
            VALUES (:p_name, :p_consumer, :p_number, mq_utc_now());
        v_done = 1;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec,
            GDSCODE unique_key_violation, GDSCODE no_dup DO
        BEGIN
            v_until = COALESCE(v_until, DATEADD(c_seconds SECOND TO mq_utc_now()));
            IF (mq_utc_now() NOT BETWEEN DATEADD(-c_seconds SECOND TO v_until) AND v_until) THEN
                EXCEPTION;
            EXECUTE PROCEDURE imq_wait_lock(p_table, NULL, p_name, p_consumer, 0, NULL) RETURNING_VALUES v_again;
        END
    END
END

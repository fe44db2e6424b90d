-- lock_counter: lock a row of feeds until the transaction ends.
-- Arguments:   p_kind (C: the counter p_name; F: the feed p_name; P: the position of p_consumer in the feed p_name; N: nothing
--              but these names, for a row that is to be inserted), p_name, p_consumer
-- Returns:     number: the row's, or NULL when there is none
-- Errors:      the engine's lock conflict when another transaction keeps the row for longer than two seconds
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_lock_counter('F', 'orders', NULL) RETURNING_VALUES v_last;
--
-- From Firebird 4.0 on a statement does not see what others have inserted since it began, and an INSERT of the same would
-- fail. Who locks the names first meets the other's lock instead, and then the engine begins the whole call again.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_lock_counter (
    p_kind varchar(1) CHARACTER SET ASCII,
    p_name mq_name,
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
        IF (p_kind = 'C') THEN
            UPDATE mq_counter SET last_number = last_number WHERE name = :p_name RETURNING last_number INTO number;
        ELSE IF (p_kind = 'F') THEN
            UPDATE mq_feed SET last_number = last_number WHERE name = :p_name RETURNING last_number INTO number;
        ELSE IF (p_kind = 'P') THEN
            UPDATE mq_feed_consumer SET moved_at = moved_at WHERE feed = :p_name AND consumer = :p_consumer
            RETURNING "POSITION" INTO number;
        ELSE
            UPDATE mq_stripe SET n = n
            WHERE n = MOD(ABS(HASH(:p_name || ASCII_CHAR(10) || COALESCE(:p_consumer, ''))), 16384);
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
                    SELECT COUNT(*) FROM mq_feed WHERE name = :p_name INTO v_seen;
        END
    END
END^

SET TERM ; ^

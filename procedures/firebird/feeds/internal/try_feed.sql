-- try_feed: lock a row of a feed for try_lock, which handles the conflicts: p_table is counter, feed or feed_consumer.
-- Replaces the file of the same name in common/internal.
CREATE OR ALTER PROCEDURE imq_try_feed (p_table varchar(13) CHARACTER SET ASCII, p_name mq_argument, p_consumer mq_name)
RETURNS (locked integer, number bigint)
AS
BEGIN
    /*!5 IF (p_table = 'counter') THEN
        FOR SELECT last_number FROM mq_counter WHERE name = :p_name WITH LOCK SKIP LOCKED INTO number AS CURSOR e DO
            locked = 1;
    ELSE IF (p_table = 'feed') THEN
        FOR SELECT last_number FROM mq_feed WHERE name = :p_name WITH LOCK SKIP LOCKED INTO number AS CURSOR f DO
            locked = 1;
    ELSE
        FOR SELECT "POSITION" FROM mq_feed_consumer
        WHERE feed = :p_name AND consumer = :p_consumer
        WITH LOCK SKIP LOCKED INTO number AS CURSOR g DO
            locked = 1;
    IF (locked IS NULL AND (
        p_table = 'counter' AND EXISTS (SELECT * FROM mq_counter WHERE name = :p_name)
        OR p_table = 'feed' AND EXISTS (SELECT * FROM mq_feed WHERE name = :p_name)
        OR p_table = 'feed_consumer'
            AND EXISTS (SELECT * FROM mq_feed_consumer WHERE feed = :p_name AND consumer = :p_consumer))) THEN
        locked = 0;
    EXIT; */
    IF (p_table = 'counter') THEN
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
        UPDATE mq_feed_consumer SET moved_at = moved_at WHERE feed = :p_name AND consumer = :p_consumer AND "POSITION" = :number;
    END
    locked = IIF(ROW_COUNT > 0, 1, IIF(number IS NULL, NULL, 0));
END

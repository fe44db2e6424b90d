-- try_feed: lock a row of an area for try_lock: counter, feed or feed_consumer. The area replaces this.
CREATE OR ALTER PROCEDURE imq_try_feed (p_table varchar(13) CHARACTER SET ASCII, p_name mq_argument, p_consumer mq_name)
RETURNS (locked integer, number bigint)
AS
BEGIN
END

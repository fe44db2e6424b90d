-- try_polled: lock a row of an area for try_lock: polled or polled_batch. The area replaces this.
CREATE OR ALTER PROCEDURE imq_try_polled (p_table varchar(13) CHARACTER SET ASCII, p_name mq_argument)
RETURNS (locked integer, number bigint)
AS
BEGIN
END

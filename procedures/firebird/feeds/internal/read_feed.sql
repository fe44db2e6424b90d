-- read_feed: return a feed's row of mq_feed.
-- Returns:     table_name, sync_column, key_columns, last_number
--
-- Firebird 3.0 can miss a row that another transaction, such as a publisher, is changing: see lock_row.
CREATE OR ALTER PROCEDURE imq_read_feed (p_feed mq_name)
RETURNS (
    table_name varchar(63) CHARACTER SET UTF8, sync_column varchar(63) CHARACTER SET UTF8, key_columns mq_text,
    last_number bigint
)
AS
DECLARE c_misses integer = 3;
DECLARE v_misses integer = 0;
BEGIN
    WHILE (last_number IS NULL AND v_misses < c_misses) DO
    BEGIN
        SELECT f.table_name, f.sync_column, f.key_columns, f.last_number FROM mq_feed AS f WHERE f.name = :p_feed
        INTO table_name, sync_column, key_columns, last_number;
        v_misses = v_misses + 1;
    END
    IF (last_number IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('not_found', 'feed: there is no feed ' || p_feed);
    SUSPEND;
END

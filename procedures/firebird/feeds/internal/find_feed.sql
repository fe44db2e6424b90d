-- find_feed: return a feed, with its table and columns ready for SQL.
-- Returns:     name (of the table, as in the catalog), quoted and label (as find_table returns them), sync (the sync column,
--              quoted), key_columns (for row_json), last_number
CREATE OR ALTER PROCEDURE imq_find_feed (p_feed mq_name)
RETURNS (
    name varchar(63) CHARACTER SET UTF8, quoted varchar(130) CHARACTER SET UTF8, label varchar(63) CHARACTER SET UTF8,
    sync varchar(130) CHARACTER SET UTF8, key_columns mq_text, last_number bigint
)
AS
DECLARE v_columns integer;
DECLARE v_sync varchar(63) CHARACTER SET UTF8;
BEGIN
    SELECT table_name, sync_column, '"' || REPLACE(table_name, '"', '""') || '"', '"' || REPLACE(sync_column, '"', '""') || '"', key_columns,
        last_number
    FROM imq_read_feed(:p_feed)
    INTO name, v_sync, quoted, sync, key_columns, last_number;
    SELECT label FROM imq_find_table('table', :quoted) INTO label;
    BEGIN
        SELECT COUNT(*) FROM imq_find_columns('table', :name, :key_columns || ', ' || :sync) INTO v_columns;
        WHEN EXCEPTION mq_50002 DO
            EXECUTE PROCEDURE imq_raise_error('unsuitable_table', label || ' no longer has all columns of the feed ' || p_feed
                || ': ' || CAST(SUBSTRING(key_columns FROM 1 FOR 400) AS varchar(400)) || ' and ' || sync);
    END
    IF (imq_is_sync_column(name, v_sync) = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', label || ': column ' || sync || ' is computed or no bigint: '
            || 'drop_feed, then create_feed again');
    SUSPEND;
END

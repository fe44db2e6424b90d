-- fetch_feed: return the rows after a consumer's position, in the order of their numbers.
-- Arguments:   p_feed, p_consumer (1 to 200 characters each; a new consumer starts at the first row), p_size (1 to 10,000;
--              NULL: 100)
-- Returns:     feed_position (the row's number), row_key and row_data (JSON objects of the key columns, and of all)
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: reads only, without locks; returns the same rows again until advance_feed moves the position
-- Example:     SELECT * FROM mq_fetch_feed('orders', 'search', 100);

CREATE OR ALTER PROCEDURE mq_fetch_feed (
    p_feed mq_argument,
    p_consumer mq_argument,
    p_size bigint = NULL
)
RETURNS (feed_position bigint, row_key mq_text, row_data mq_text)
AS
DECLARE v_name varchar(63) CHARACTER SET UTF8;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8; DECLARE v_sync varchar(130) CHARACTER SET UTF8;
DECLARE v_keys mq_text;
DECLARE v_last bigint;
DECLARE v_position bigint = 0;
DECLARE v_statement mq_text;
BEGIN
    EXECUTE PROCEDURE imq_require_name('feed', p_feed, 0);
    EXECUTE PROCEDURE imq_require_name('consumer', p_consumer, 0);
    EXECUTE PROCEDURE imq_require_record_version;
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    -- Read the counter before the rows: all numbers up to it are committed, and no row above it is read. On Firebird 3.0
    -- each statement, and even each row, is read as committed at that moment.
    SELECT name, quoted, sync, key_columns, last_number FROM imq_find_feed(:p_feed)
    INTO v_name, v_quoted, v_sync, v_keys, v_last;
    SELECT "POSITION" FROM mq_feed_consumer WHERE feed = :p_feed AND consumer = :p_consumer INTO v_position;
    v_statement = 'SELECT "t".{"sync"}, {"key"}, {"row"} FROM {"table"} AS "t"
        WHERE "t".{"sync"} > ? AND "t".{"sync"} <= ? ORDER BY "t".{"sync"} ROWS CAST(? AS bigint)';
    v_statement = REPLACE(REPLACE(v_statement, '{"table"}', v_quoted), '{"sync"}', v_sync);
    v_statement = REPLACE(v_statement, '{"key"}', imq_row_json(v_name, v_keys, 't'));
    v_statement = REPLACE(v_statement, '{"row"}', imq_row_json(v_name, NULL, 't'));
    FOR EXECUTE STATEMENT (v_statement) (v_position, v_last, COALESCE(p_size, 100))
        INTO feed_position, row_key, row_data
    DO
        SUSPEND;
    WHEN GDSCODE no_priv DO
    BEGIN
        EXECUTE PROCEDURE imq_require_rights(v_quoted, NULL, 0);
        EXCEPTION;
    END
END

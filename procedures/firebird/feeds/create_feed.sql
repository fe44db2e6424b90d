-- create_feed: create a feed from a table: its rows, numbered in the order in which they are published.
-- Arguments:   p_feed (1 to 200 characters), p_table (as SQL names it), p_key_columns (1 to 100 names separated by commas;
--              they include all columns of a primary key or unique index), p_sync_column (a bigint column that allows NULL;
--              an ascending index begins with it)
-- Returns:     created: 1; 0 when the same feed already exists
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for a call that creates the same feed, in NO WAIT for two seconds
-- Example:     SELECT * FROM mq_create_feed('orders', 'orders', 'id', 'sync');
--
-- The table is read and changed with the rights of the caller, here and in publish_feed and fetch_feed.

CREATE OR ALTER PROCEDURE mq_create_feed (
    p_feed mq_argument,
    p_table mq_text,
    p_key_columns mq_text,
    p_sync_column mq_text
)
RETURNS (created smallint)
AS
DECLARE v_table varchar(63) CHARACTER SET UTF8; DECLARE v_sync varchar(63) CHARACTER SET UTF8;
DECLARE v_old_table varchar(63) CHARACTER SET UTF8; DECLARE v_old_sync varchar(63) CHARACTER SET UTF8;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8; DECLARE v_sync_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_keys mq_text; DECLARE v_old_keys mq_text;
DECLARE v_count integer;
DECLARE v_type varchar(120) CHARACTER SET UTF8;
DECLARE v_nullable smallint;
DECLARE v_statement mq_argument;
DECLARE v_last bigint;
DECLARE v_old_feed mq_name;
BEGIN
    EXECUTE PROCEDURE imq_require_name('feed', p_feed, 0);
    -- A snapshot could show an older highest number.
    IF (RDB$GET_CONTEXT('SYSTEM', 'ISOLATION_LEVEL') <> 'READ COMMITTED') THEN
        EXECUTE PROCEDURE imq_require_read_committed;
    SELECT name, quoted FROM imq_find_table('table', :p_table) INTO v_table, v_quoted;
    SELECT LIST(quoted) FROM imq_find_columns('key_columns', :v_table, COALESCE(:p_key_columns, '')) INTO v_keys;
    SELECT COUNT(*), MAX(name), MAX(quoted), MAX(type), MAX(nullable)
    FROM imq_find_columns('sync_column', :v_table, COALESCE(:p_sync_column, ''))
    INTO v_count, v_sync, v_sync_quoted, v_type, v_nullable;
    IF (v_count > 1 OR POSITION(',' || v_sync_quoted || ',', ',' || v_keys || ',') > 0) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'sync_column: must be one column that is not in key_columns');

    BEGIN
        EXECUTE PROCEDURE imq_require_rights(v_quoted, v_sync_quoted, 0);
        WHEN GDSCODE read_only_field DO
            v_type = 'computed';
    END

    IF (imq_has_key(v_table, v_keys) = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table',
            'key_columns: must include all columns of the primary key of ' || v_table || ', or of a unique index of NOT NULL columns');
    IF (v_type <> 'BIGINT' OR v_nullable = 0) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', 'sync_column: must be a bigint column that allows NULL: ALTER TABLE '
            || v_quoted || ' ALTER COLUMN ' || v_sync_quoted || TRIM(IIF(v_type <> 'BIGINT', ' TYPE BIGINT', ' DROP NOT NULL')));
    IF (imq_find_index(v_table, v_sync_quoted) IS NULL) THEN
    BEGIN
        v_statement = LEFT(v_table, 15) || '_' || LEFT(v_sync, 15);
        IF (OCTET_LENGTH(v_statement) > 31) THEN
            v_statement = 'SYNC_' || ABS(HASH(v_statement));
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', 'sync_column: needs an ascending index: CREATE INDEX "'
            || REPLACE(v_statement, '"', '') || '" ON ' || v_quoted || ' (' || v_sync_quoted || ')');
    END

    EXECUTE PROCEDURE imq_lock_row('stripe', v_table, v_sync) RETURNING_VALUES v_last;
    EXECUTE PROCEDURE imq_lock_row('stripe', p_feed, NULL) RETURNING_VALUES v_last;
    SELECT FIRST 1 name, table_name, sync_column, key_columns FROM mq_feed
    WHERE name = :p_feed OR table_name = :v_table AND sync_column = :v_sync
    ORDER BY IIF(name = :p_feed, 0, 1)
    INTO v_old_feed, v_old_table, v_old_sync, v_old_keys;
    created = IIF(v_old_feed IS NULL, 1, 0);
    IF (created = 1) THEN
    BEGIN
        -- Without a descending index MAX would read the whole table. A binary search finds the highest number.
        EXECUTE STATEMENT REPLACE(REPLACE(q'[EXECUTE BLOCK RETURNS (number bigint)
AS
DECLARE v_to bigint = 4611686018427387903;
DECLARE v_middle bigint;
BEGIN
    number = 0;
    WHILE (number < v_to) DO
    BEGIN
        v_middle = number + (v_to - number + 1) / 2;
        IF (EXISTS (SELECT * FROM {"table"} AS t WHERE t.{"sync"} >= :v_middle)) THEN
            number = v_middle;
        ELSE
            v_to = v_middle - 1;
    END
    SUSPEND;
END]', '{"table"}', v_quoted), '{"sync"}', v_sync_quoted)
            INTO v_last;
        INSERT INTO mq_feed (name, last_number, created_at, table_name, sync_column, key_columns)
        VALUES (:p_feed, :v_last, mq_utc_now(), :v_table, :v_sync, :v_keys);
    END
    ELSE IF (v_old_feed <> p_feed) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', 'sync_column: already used by feed ' || v_old_feed);
    ELSE IF (v_old_table <> v_table OR v_old_sync <> v_sync OR v_old_keys <> v_keys) THEN
        EXECUTE PROCEDURE imq_raise_error('already_exists',
            'feed: ' || p_feed || ' exists with other columns or another table: drop_feed first');
    SUSPEND;
END

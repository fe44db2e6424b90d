-- publish_feed: number up to p_size rows whose sync column is NULL.
-- Arguments:   p_feed (1 to 200 characters), p_size (1 to 10,000; NULL: 1,000)
-- Returns:     affected: rows numbered
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's, which must be READ COMMITTED NO WAIT, and locks the feed's counter until it ends;
--              publishers of one feed wait two seconds for each other; skips rows that writers have locked
-- Example:     SELECT * FROM mq_publish_feed('orders', 500);
--
-- The user's rows are read and changed with the rights of the connected user. The first rows of the index are numbered in
-- the order of their keys. If too many of them are locked, the following rows are numbered too.

CREATE OR ALTER PROCEDURE mq_publish_feed (
    p_feed mq_argument,
    p_size bigint = NULL
)
RETURNS (affected bigint)
AS
DECLARE v_quoted varchar(130) CHARACTER SET UTF8; DECLARE v_sync varchar(130) CHARACTER SET UTF8;
DECLARE v_label varchar(63) CHARACTER SET UTF8;
DECLARE v_keys mq_text; DECLARE v_order mq_text; DECLARE v_statement mq_text;
DECLARE v_any bigint; DECLARE v_last bigint; DECLARE v_number bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('feed', p_feed, 0);
    EXECUTE PROCEDURE imq_require_range('size', p_size, 1, 10000);
    EXECUTE PROCEDURE imq_require_read_committed;
    SELECT quoted, label, sync, key_columns FROM imq_find_feed(:p_feed) INTO v_quoted, v_label, v_sync, v_keys;
    affected = 0;
    EXECUTE STATEMENT REPLACE(REPLACE('SELECT 1 FROM {"table"} AS t WHERE t.{"sync"} IS NULL ORDER BY t.{"sync"} ROWS 1',
        '{"table"}', v_quoted), '{"sync"}', v_sync)
        INTO v_any;
    IF (v_any IS NOT NULL) THEN
    BEGIN
        -- Lock the counter before the rows: a publisher that waits here holds no row locks.
        EXECUTE PROCEDURE imq_lock_row('feed', p_feed, NULL) RETURNING_VALUES v_last;
        IF (v_last IS NULL) THEN
            EXECUTE PROCEDURE imq_raise_error('not_found', 'feed: there is no feed ' || p_feed);
        SELECT LIST('t."' || REPLACE(name, '"', '""') || '" AS k' || n), LIST('d.k' || n)
        FROM imq_split_names('key_columns', :v_keys) INTO v_keys, v_order;
        -- Placeholders look like {"table"}. A quoted name cannot contain one, because its double quotes are doubled.
        v_statement = q'[EXECUTE BLOCK (p_last bigint = ?, p_to bigint = ?, p_size bigint = ?)
RETURNS (number bigint)
AS
DECLARE v_place char(8) CHARACTER SET OCTETS;
DECLARE v_last bigint; DECLARE v_given bigint;
DECLARE v_met bigint = 0;
BEGIN
    v_last = p_last;
    FOR SELECT d.place
        FROM (
            SELECT t.RDB$DB_KEY AS place, {"keys"} FROM {"table"} AS t
            WHERE t.{"sync"} IS NULL ORDER BY t.{"sync"} ROWS :p_size
        ) AS d
        ORDER BY {"order"}
        INTO v_place
    DO
    BEGIN
        v_met = v_met + 1;
        v_given = v_last;
        {"number_row_c1"}
        {"check"}
    END
    IF (v_met = p_size AND v_last < p_to) THEN
        FOR SELECT t.RDB$DB_KEY FROM {"table"} AS t WHERE t.{"sync"} IS NULL ORDER BY t.{"sync"} INTO v_place DO
        BEGIN
            v_given = v_last;
            {"number_row_c2"}
            {"check"}
            IF (v_last >= p_to) THEN
                LEAVE;
        END
    number = v_last;
    SUSPEND;
END]';
        v_statement = REPLACE(v_statement, '{"check"}',
            'IF (v_given IS DISTINCT FROM v_last) THEN BEGIN number = -1; SUSPEND; EXIT; END');
        v_statement = REPLACE(v_statement, '{"number_row_c1"}', imq_number_row('c1'));
        v_statement = REPLACE(v_statement, '{"number_row_c2"}', imq_number_row('c2'));
        v_statement = REPLACE(REPLACE(v_statement, '{"keys"}', v_keys), '{"order"}', v_order);
        v_statement = REPLACE(REPLACE(v_statement, '{"table"}', v_quoted), '{"sync"}', v_sync);
        -- On 4.0 an UPDATE of a row that was changed and committed since this call began breaks the block: it returns no row
        -- or raises one of these errors. The caller must call again, as after any other conflict.
        BEGIN
            EXECUTE STATEMENT (v_statement) (v_last, v_last + COALESCE(p_size, 1000), COALESCE(p_size, 1000)) INTO v_number;
            WHEN GDSCODE req_sync, GDSCODE malformed_string DO
                v_number = NULL;
        END
        IF (v_number IS NULL) THEN
            -- This transaction holds the row: the UPDATE below raises a lock conflict.
            IN AUTONOMOUS TRANSACTION DO
                UPDATE mq_feed SET last_number = last_number WHERE name = :p_feed;
        IF (v_number = -1) THEN
            EXECUTE PROCEDURE imq_raise_error('unsuitable_table',
                'a trigger of ' || v_label || ' prevents numbering: it must not set the sync column');
        affected = v_number - v_last;
        UPDATE mq_feed SET last_number = :v_number WHERE name = :p_feed;
    END
    SUSPEND;
    WHEN GDSCODE no_priv DO
    BEGIN
        EXECUTE PROCEDURE imq_require_rights(v_quoted, v_sync, 0);
        EXCEPTION;
    END
END

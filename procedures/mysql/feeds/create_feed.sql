-- create_feed: create a feed from a table: its rows, numbered in the order in which they are published.
-- Arguments:   p_feed (1 to 200 characters), p_table (table or database.table; default: the queue's database), p_key_columns
--              (1 to 100 names separated by commas; they include all columns of a primary key or unique index),
--              p_sync_column (a bigint column that allows NULL; an index begins with it)
-- Returns:     created: 1; 0 when the same feed already exists
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's, which must be READ COMMITTED
-- Example:     CALL mq_create_feed('orders', 'shop.orders', 'id', 'sync');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_create_feed(
    IN p_feed longtext CHARACTER SET utf8mb4,
    IN p_table longtext CHARACTER SET utf8mb4,
    IN p_key_columns longtext CHARACTER SET utf8mb4,
    IN p_sync_column longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_name, v_sync, v_type, v_index varchar(200) CHARACTER SET utf8mb4;
    -- The catalog's own character set: with another one the server scans the whole catalog.
    DECLARE v_of_schema, v_of_name varchar(64) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci;
    DECLARE v_quoted, v_label, v_short, v_keys, v_columns, v_names longtext CHARACTER SET utf8mb4;
    DECLARE v_nullable, v_same, v_own tinyint;
    DECLARE v_unique, v_computed int;
    DECLARE v_nothing bigint;
    DECLARE v_created smallint DEFAULT 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        SET @mq_n = NULL;
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('feed', p_feed, 0);
    -- A snapshot could show an older highest number.
    CALL imq_begin_call(1, v_own);
    CALL imq_find_table('table', p_table, v_schema, v_name, v_quoted, v_label);
    CALL imq_find_columns('key_columns', v_quoted, p_key_columns, v_keys);
    CALL imq_find_columns('sync_column', v_quoted, p_sync_column, v_columns);
    SET v_sync = JSON_UNQUOTE(JSON_EXTRACT(v_columns, '$[0].name')), v_nullable = JSON_EXTRACT(v_columns, '$[0].nullable'),
        v_type = JSON_UNQUOTE(JSON_EXTRACT(v_columns, '$[0].type'));
    SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(j.name) ORDER BY j.n), ']'), MAX(CAST(j.name AS binary) = CAST(v_sync AS binary))
    INTO v_names, v_same
    FROM JSON_TABLE(v_keys, '$[*]' COLUMNS (n int PATH '$.n', name varchar(64) CHARACTER SET utf8mb4 PATH '$.name')) AS j;
    IF v_same OR JSON_LENGTH(v_columns) > 1 THEN
        CALL imq_raise_error('invalid_argument', 'sync_column: must be one column that is not in key_columns');
    END IF;
    -- Error messages are cut at 128 characters: include the database's name only where it is needed.
    SET v_short = IF(v_schema = '', CONCAT('`', REPLACE(v_name, '`', '``'), '`'), v_quoted);
    SET v_of_schema = IF(v_schema = '', DATABASE(), v_schema), v_of_name = v_name;
    SELECT COUNT(*) INTO v_computed
    FROM information_schema.columns AS c
    WHERE c.table_schema = v_of_schema AND c.table_name = v_of_name AND c.column_name = v_sync
        AND COALESCE(c.generation_expression, '') <> '';
    IF v_computed > 0 THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('sync_column: must not be a generated column: ALTER TABLE ', v_short,
            ' ADD sync bigint'));
    END IF;
    CALL imq_require_rights(v_short, v_sync, 0);
    SELECT COUNT(*) INTO v_unique
    FROM (
        SELECT s.index_name
        FROM information_schema.statistics AS s
        LEFT JOIN JSON_TABLE(v_names, '$[*]' COLUMNS (name varchar(64) CHARACTER SET utf8mb4 PATH '$')) AS j
            ON CAST(j.name AS binary) = CAST(CONVERT(s.column_name USING utf8mb4) AS binary)
        WHERE s.table_schema = v_of_schema AND s.table_name = v_of_name AND s.non_unique = 0
        GROUP BY s.index_name
        HAVING COUNT(*) = COUNT(j.name) AND SUM(s.nullable = 'YES') = 0
    ) AS u;
    SELECT MIN(s.index_name) INTO v_index
    FROM information_schema.statistics AS s
    WHERE s.table_schema = v_of_schema AND s.table_name = v_of_name AND s.seq_in_index = 1
        AND s.column_name = v_sync AND s.index_type = 'BTREE' /*M! AND s.ignored = 'NO' */ /*!80000 AND s.is_visible = 'YES' */;
    IF v_unique = 0 THEN
        CALL imq_raise_error('unsuitable_table',
            'key_columns: must include all columns of the primary key, or of a unique index of NOT NULL columns');
    ELSEIF v_type NOT LIKE 'bigint%' OR v_type LIKE '%unsigned%' OR NOT v_nullable THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('sync_column: ALTER TABLE ', v_short,
            ' MODIFY ', LEFT(v_sync, 30), ' bigint NULL'));
    ELSEIF v_index IS NULL THEN
        CALL imq_raise_error('unsuitable_table', CONCAT('sync_column: CREATE INDEX ', LEFT(v_sync, 20), ' ON ', v_short, ' (`',
            REPLACE(v_sync, '`', '``'), '`)'));
    END IF;

    CALL imq_run_template(JSON_OBJECT('table', v_quoted, 'sync', CONCAT('`', REPLACE(v_sync, '`', '``'), '`')),
        'SELECT GREATEST(COALESCE(MAX({sync}), 0), 0) INTO @mq_n FROM {table}', v_nothing);
    CALL imq_add_feed(p_feed, v_of_schema, v_of_name, v_sync, v_names, @mq_n, v_created);
    SET @mq_n = NULL;
    CALL imq_end_call(v_own);
    SELECT v_created AS created;
END

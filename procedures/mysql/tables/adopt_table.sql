-- adopt_table: use a user's table as a queue, without changing the table.
-- Arguments:   p_name (1 to 200 characters), p_table (table or database.table; default: the queue's database), p_key_columns
--              (1 to 100 names separated by commas; NULL: all columns, with p_equal_rows 1), p_order_column (NULL: the key
--              columns), p_status_column (NULL: none), p_ready_value, p_active_value (NULL: a claim does not write the
--              status), p_done_value, p_error_value, p_on_complete (keep or delete; NULL: keep), p_late_seconds (0 to
--              315,360,000; only without a status and with keep), p_equal_rows (0 or 1; NULL: 0), p_max_attempts (1 to
--              1,000; NULL: 25)
-- Returns:     created: 1; 0 when the table is already adopted with the same settings
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's
-- Example:     CALL mq_adopt_table('orders', 'shop.orders', 'id', NULL, 'status', 'N', 'A', 'D', 'E', 'keep', NULL, NULL, NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_adopt_table(
    IN p_name longtext CHARACTER SET utf8mb4, IN p_table longtext CHARACTER SET utf8mb4,
    IN p_key_columns longtext CHARACTER SET utf8mb4, IN p_order_column longtext CHARACTER SET utf8mb4,
    IN p_status_column longtext CHARACTER SET utf8mb4, IN p_ready_value longtext CHARACTER SET utf8mb4,
    IN p_active_value longtext CHARACTER SET utf8mb4, IN p_done_value longtext CHARACTER SET utf8mb4,
    IN p_error_value longtext CHARACTER SET utf8mb4, IN p_on_complete longtext CHARACTER SET utf8mb4,
    IN p_late_seconds bigint, IN p_equal_rows bigint, IN p_max_attempts bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_table, v_order, v_status, v_key_index, v_claim_index, v_bad,
        v_given_order varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_quoted, v_label, v_found, v_keys, v_wanted, v_list, v_columns, v_idents longtext CHARACTER SET utf8mb4;
    DECLARE v_delete tinyint DEFAULT COALESCE(p_on_complete, 'keep') = 'delete';
    DECLARE v_created int;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;

    CALL imq_require_name('name', p_name, 0);
    IF BINARY p_on_complete NOT IN ('keep', 'delete') THEN
        CALL imq_raise_error('invalid_argument', 'on_complete: must be keep or delete');
    END IF;
    CALL imq_require_range('late_seconds', p_late_seconds, 0, 315360000);
    CALL imq_require_range('equal_rows', p_equal_rows, 0, 1);
    CALL imq_require_range('max_attempts', p_max_attempts, 1, 1000);
    CALL imq_begin_call(0, v_own);
    CALL imq_find_table('table', p_table, v_schema, v_table, v_quoted, v_label);
    SET v_schema = IF(v_schema = '', DATABASE(), v_schema), v_label = LEFT(v_label, 40);
    IF p_key_columns IS NOT NULL THEN
        CALL imq_find_columns('key_columns', v_quoted, p_key_columns, v_found);
        SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(j.name) ORDER BY j.n), ']'), GROUP_CONCAT(j.quoted ORDER BY j.n SEPARATOR ', ')
        INTO v_keys, v_list
        FROM JSON_TABLE(v_found, '$[*]' COLUMNS (n int PATH '$.n', name varchar(200) CHARACTER SET utf8mb4 PATH '$.name',
            quoted varchar(200) CHARACTER SET utf8mb4 PATH '$.quoted')) AS j;
    END IF;
    CALL imq_find_one_column('order_column', v_quoted, p_order_column, v_order);
    CALL imq_find_one_column('status_column', v_quoted, p_status_column, v_status);
    SET v_given_order = v_order;

    IF v_status IS NULL THEN
        SET v_bad = CASE WHEN p_ready_value IS NOT NULL THEN 'ready_value' WHEN p_active_value IS NOT NULL THEN 'active_value'
            WHEN p_done_value IS NOT NULL THEN 'done_value' WHEN p_error_value IS NOT NULL THEN 'error_value' END;
        IF v_bad IS NOT NULL THEN
            CALL imq_raise_error('invalid_argument', CONCAT(v_bad, ': needs a status_column'));
        END IF;
    ELSEIF JSON_CONTAINS(COALESCE(v_keys, '[]'), JSON_QUOTE(v_status)) THEN
        CALL imq_raise_error('invalid_argument', 'key_columns: must not include the status_column');
    ELSEIF v_status = v_order THEN
        CALL imq_raise_error('invalid_argument', 'order_column: must not be the status_column');
    ELSE
        CALL imq_require_status(v_schema, v_table, v_status, p_ready_value, p_active_value, p_done_value, p_error_value, v_delete);
    END IF;
    IF p_late_seconds IS NOT NULL AND (v_status IS NOT NULL OR v_delete) THEN
        CALL imq_raise_error('invalid_argument', 'late_seconds: allowed only without a status_column and with keep');
    ELSEIF p_equal_rows = 1 AND v_keys IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', 'equal_rows: allowed only without key_columns');
    END IF;

    CALL imq_require_distinct_rows(v_schema, v_table, v_label, v_keys, v_status, COALESCE(p_equal_rows, 0), v_key_index);
    SET v_wanted = CONCAT_WS(', ', CONCAT('`', REPLACE(v_status, '`', '``'), '`'),
        IF(v_order IS NULL, v_list, CONCAT('`', REPLACE(v_order, '`', '``'), '`')));
    IF v_status IS NULL AND NOT v_delete THEN
        IF p_late_seconds IS NULL THEN
            CALL imq_raise_error('unsuitable_table',
                'without a status, rows that commit late are missed: give late_seconds, or 0 to accept this');
        ELSEIF v_order IS NULL AND COALESCE(JSON_LENGTH(v_keys), 0) <> 1 THEN
            CALL imq_raise_error('unsuitable_table',
                'order_column: needed without a status and with keep, unless there is exactly one key column');
        END IF;
        SET v_order = COALESCE(v_order, JSON_UNQUOTE(JSON_EXTRACT(v_keys, '$[0]'))),
            v_wanted = CONCAT('`', REPLACE(v_order, '`', '``'), '`');
        CALL imq_require_order(v_schema, v_table, v_order);
    ELSEIF v_status IS NULL AND v_keys IS NULL THEN
        SET v_wanted = '';
    END IF;
    IF v_wanted <> '' THEN
        CALL imq_require_index(v_schema, v_table, v_wanted, v_claim_index);
    END IF;
    CALL imq_require_rights(v_quoted, v_status, v_delete);

    -- Store the current columns as the identity: a column added later does not change a row's identity.
    CALL imq_read_columns(v_schema, v_table, v_columns);
    SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(c.name, c.kind, c.scale) ORDER BY COALESCE(j.n, c.n)), ']') INTO v_idents
    FROM JSON_TABLE(v_columns, '$[*]' COLUMNS (n int PATH '$.n', name varchar(64) CHARACTER SET utf8mb4 PATH '$.name',
        kind varchar(40) CHARACTER SET utf8mb4 PATH '$.kind', scale int PATH '$.scale')) AS c
    LEFT JOIN JSON_TABLE(COALESCE(v_keys, '[]'), '$[*]' COLUMNS (n FOR ORDINALITY,
        name varchar(64) CHARACTER SET utf8mb4 PATH '$')) AS j ON CAST(j.name AS binary) = CAST(c.name AS binary)
    WHERE IF(v_keys IS NULL, NOT CAST(c.name AS binary) <=> CAST(v_status AS binary), j.n IS NOT NULL);
    CALL imq_add_polled(JSON_OBJECT('name', p_name, 'schema', v_schema, 'table', v_table, 'ident_columns', v_idents,
        'keys', v_keys, 'order', v_given_order, 'status', v_status, 'ready', p_ready_value,
        'active', p_active_value, 'done', p_done_value, 'error', p_error_value, 'deletes', IF(v_delete, 1, 0), 'late', p_late_seconds, 'equal', COALESCE(p_equal_rows, 0),
        'max', COALESCE(p_max_attempts, 25), 'key_index', v_key_index, 'claim_index', v_claim_index), v_created);
    SELECT v_created AS created;
    CALL imq_end_call(v_own);
END

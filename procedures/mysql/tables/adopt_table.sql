-- adopt_table: use a user's table as a queue, without changing the table.
-- Arguments:   p_name (1 to 200 characters), p_table (table or database.table; default: the queue's database), p_options (a flat
--              JSON object): key_columns (1 to 100 names separated by commas; default all columns, with equal_rows 1),
--              order_column (default the key columns), status_column (default none), ready_value, active_value (default: a
--              claim does not write the status), done_value, error_value, on_complete (keep or delete; keep), late_seconds
--              (0 to 315,360,000; only without a status and with keep), equal_rows (0 or 1; 0), max_attempts (1 to 1,000;
--              25)
-- Returns:     created: 1; 0 when the table is already adopted with the same settings
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's
-- Example:     CALL mq_adopt_table('orders', 'shop.orders', '{"key_columns": "id", "status_column": "status",
--              "ready_value": "N", "active_value": "A", "done_value": "D", "error_value": "E"}');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_adopt_table(
    IN p_name longtext CHARACTER SET utf8mb4, IN p_table longtext CHARACTER SET utf8mb4,
    IN p_options longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_table, v_order, v_status, v_key_index, v_claim_index, v_bad,
        v_given_order varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_quoted, v_label, v_found, v_keys, v_wanted, v_list, v_columns, v_idents longtext CHARACTER SET utf8mb4;
    DECLARE v_read, v_key_columns, v_order_column, v_status_column, v_ready, v_active, v_done, v_error,
        v_on_complete longtext CHARACTER SET utf8mb4;
    DECLARE v_late_seconds, v_equal_rows, v_max_attempts int;
    DECLARE v_delete tinyint;
    DECLARE v_created int;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;

    CALL imq_require_name('name', p_name, 0);
    CALL imq_read_options(p_options, 'options', '{"key_columns": "text", "order_column": "text", "status_column": "text",
        "ready_value": "text", "active_value": "text", "done_value": "text", "error_value": "text", "on_complete": "text",
        "late_seconds": [0, 315360000], "equal_rows": [0, 1], "max_attempts": [1, 1000]}', NULL, v_read);
    SELECT j.key_columns, j.order_column, j.status_column, j.ready_value, j.active_value, j.done_value, j.error_value,
        COALESCE(j.on_complete, 'keep'), j.late_seconds, COALESCE(j.equal_rows, 0), COALESCE(j.max_attempts, 25)
    INTO v_key_columns, v_order_column, v_status_column, v_ready, v_active, v_done, v_error, v_on_complete, v_late_seconds,
        v_equal_rows, v_max_attempts
    FROM JSON_TABLE(v_read, '$' COLUMNS (key_columns longtext CHARACTER SET utf8mb4 PATH '$.key_columns',
        order_column longtext CHARACTER SET utf8mb4 PATH '$.order_column',
        status_column longtext CHARACTER SET utf8mb4 PATH '$.status_column',
        ready_value longtext CHARACTER SET utf8mb4 PATH '$.ready_value',
        active_value longtext CHARACTER SET utf8mb4 PATH '$.active_value',
        done_value longtext CHARACTER SET utf8mb4 PATH '$.done_value',
        error_value longtext CHARACTER SET utf8mb4 PATH '$.error_value',
        on_complete longtext CHARACTER SET utf8mb4 PATH '$.on_complete',
        late_seconds int PATH '$.late_seconds', equal_rows int PATH '$.equal_rows', max_attempts int PATH '$.max_attempts')) AS j;
    IF BINARY v_on_complete NOT IN ('keep', 'delete') THEN
        CALL imq_raise_error('invalid_argument', 'on_complete: must be keep or delete');
    END IF;
    SET v_delete = v_on_complete = 'delete';
    CALL imq_begin_call(0, v_own);
    CALL imq_find_table('table', p_table, v_schema, v_table, v_quoted, v_label);
    SET v_schema = IF(v_schema = '', DATABASE(), v_schema), v_label = LEFT(v_label, 40);
    IF v_key_columns IS NOT NULL THEN
        CALL imq_find_columns('key_columns', v_quoted, v_key_columns, v_found);
        SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(j.name) ORDER BY j.n), ']'), GROUP_CONCAT(j.quoted ORDER BY j.n SEPARATOR ', ')
        INTO v_keys, v_list
        FROM JSON_TABLE(v_found, '$[*]' COLUMNS (n int PATH '$.n', name varchar(200) CHARACTER SET utf8mb4 PATH '$.name',
            quoted varchar(200) CHARACTER SET utf8mb4 PATH '$.quoted')) AS j;
    END IF;
    CALL imq_find_one_column('order_column', v_quoted, v_order_column, v_order);
    CALL imq_find_one_column('status_column', v_quoted, v_status_column, v_status);
    SET v_given_order = v_order;

    IF v_status IS NULL THEN
        SET v_bad = CASE WHEN v_ready IS NOT NULL THEN 'ready_value' WHEN v_active IS NOT NULL THEN 'active_value'
            WHEN v_done IS NOT NULL THEN 'done_value' WHEN v_error IS NOT NULL THEN 'error_value' END;
        IF v_bad IS NOT NULL THEN
            CALL imq_raise_error('invalid_argument', CONCAT(v_bad, ': needs a status_column'));
        END IF;
    ELSEIF JSON_CONTAINS(COALESCE(v_keys, '[]'), JSON_QUOTE(v_status)) THEN
        CALL imq_raise_error('invalid_argument', 'key_columns: must not include the status_column');
    ELSEIF v_status = v_order THEN
        CALL imq_raise_error('invalid_argument', 'order_column: must not be the status_column');
    ELSE
        CALL imq_require_status(v_schema, v_table, v_status, v_ready, v_active, v_done, v_error, v_delete);
    END IF;
    IF v_late_seconds IS NOT NULL AND (v_status IS NOT NULL OR v_delete) THEN
        CALL imq_raise_error('invalid_argument', 'late_seconds: allowed only without a status_column and with keep');
    ELSEIF v_equal_rows = 1 AND v_keys IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', 'equal_rows: allowed only without key_columns');
    END IF;

    CALL imq_require_distinct_rows(v_schema, v_table, v_label, v_keys, v_status, v_equal_rows, v_key_index);
    SET v_wanted = CONCAT_WS(', ', CONCAT('`', REPLACE(v_status, '`', '``'), '`'),
        IF(v_order IS NULL, v_list, CONCAT('`', REPLACE(v_order, '`', '``'), '`')));
    IF v_status IS NULL AND NOT v_delete THEN
        IF v_late_seconds IS NULL THEN
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
        'keys', v_keys, 'order', v_given_order, 'status', v_status, 'ready', v_ready,
        'active', v_active, 'done', v_done, 'error', v_error, 'deletes', IF(v_delete, 1, 0), 'late', v_late_seconds, 'equal', v_equal_rows,
        'max', v_max_attempts, 'key_index', v_key_index, 'claim_index', v_claim_index), v_created);
    SELECT v_created AS created;
    CALL imq_end_call(v_own);
END

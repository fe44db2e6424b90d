-- adopt_table: let the rows of a table of yours be claimed as work, as the table is.
-- Arguments:   p_name, p_table, p_key_columns (NULL: all columns together, see p_equal_rows), p_order_column, p_status_column,
--              p_ready_value, p_active_value, p_done_value, p_error_value, p_on_complete (keep or delete; NULL: keep),
--              p_late_seconds (without a status and with keep), p_equal_rows (0 or 1), p_max_attempts (1 to 1,000; NULL: 10)
-- Returns:     created: 1, or 0 when it was adopted so already
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table, 50007 already_exists
-- Transaction: joins the caller's
-- Example:     CALL mq_adopt_table('orders', 'shop.orders', 'id', NULL, 'status', 'N', 'A', 'D', 'E', 'keep', NULL, NULL, NULL);

DROP PROCEDURE IF EXISTS mq_adopt_table;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_adopt_table(
    IN p_name longtext CHARACTER SET utf8mb4,
    IN p_table longtext CHARACTER SET utf8mb4,
    IN p_key_columns longtext CHARACTER SET utf8mb4,
    IN p_order_column longtext CHARACTER SET utf8mb4,
    IN p_status_column longtext CHARACTER SET utf8mb4,
    IN p_ready_value longtext CHARACTER SET utf8mb4,
    IN p_active_value longtext CHARACTER SET utf8mb4,
    IN p_done_value longtext CHARACTER SET utf8mb4,
    IN p_error_value longtext CHARACTER SET utf8mb4,
    IN p_on_complete longtext CHARACTER SET utf8mb4,
    IN p_late_seconds bigint,
    IN p_equal_rows bigint,
    IN p_max_attempts bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_table, v_order, v_status, v_key_index, v_claim_index, v_bad,
        v_given_order varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_quoted, v_label, v_found, v_keys, v_wanted, v_rights, v_list longtext CHARACTER SET utf8mb4;
    DECLARE v_delete tinyint DEFAULT COALESCE(p_on_complete, 'keep') = 'delete';
    DECLARE v_created, v_same int;
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;

    CALL mq_require_name('name', p_name, 0);
    IF BINARY p_on_complete NOT IN ('keep', 'delete') THEN
        CALL mq_raise_error('invalid_argument', 'on_complete: must be keep or delete');
    END IF;
    CALL mq_require_range('late_seconds', p_late_seconds, 0, 315360000);
    CALL mq_require_range('equal_rows', p_equal_rows, 0, 1);
    CALL mq_require_range('max_attempts', p_max_attempts, 1, 1000);
    CALL mq_begin_call(0, v_own);
    CALL mq_find_table('table', p_table, v_schema, v_table, v_quoted, v_label);
    SET v_schema = IF(v_schema = '', DATABASE(), v_schema), v_label = LEFT(v_label, 40);
    IF p_key_columns IS NOT NULL THEN
        CALL mq_find_columns('key_columns', v_quoted, p_key_columns, v_found);
        SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(j.name) ORDER BY j.n), ']'), GROUP_CONCAT(j.quoted ORDER BY j.n SEPARATOR ', ')
        INTO v_keys, v_list
        FROM JSON_TABLE(v_found, '$[*]' COLUMNS (n int PATH '$.n', name varchar(200) CHARACTER SET utf8mb4 PATH '$.name',
            quoted varchar(200) CHARACTER SET utf8mb4 PATH '$.quoted')) AS j;
    END IF;
    CALL mq_find_one_column('order_column', v_quoted, p_order_column, v_order);
    CALL mq_find_one_column('status_column', v_quoted, p_status_column, v_status);
    SET v_given_order = v_order;

    IF v_status IS NULL THEN
        SET v_bad = CASE WHEN p_ready_value IS NOT NULL THEN 'ready_value' WHEN p_active_value IS NOT NULL THEN 'active_value'
            WHEN p_done_value IS NOT NULL THEN 'done_value' WHEN p_error_value IS NOT NULL THEN 'error_value' END;
        IF v_bad IS NOT NULL THEN
            CALL mq_raise_error('invalid_argument', CONCAT(v_bad, ': needs a status_column'));
        END IF;
    ELSE
        IF JSON_CONTAINS(COALESCE(v_keys, '[]'), JSON_QUOTE(v_status)) THEN
            CALL mq_raise_error('invalid_argument', 'key_columns: must not hold the status_column');
        ELSEIF v_status = v_order THEN
            CALL mq_raise_error('invalid_argument', 'order_column: must not be the status_column');
        END IF;
        CALL mq_require_status(v_schema, v_table, v_status, p_ready_value, p_active_value, p_done_value, p_error_value, v_delete);
    END IF;
    IF p_late_seconds IS NOT NULL AND (v_status IS NOT NULL OR v_delete) THEN
        CALL mq_raise_error('invalid_argument', 'late_seconds: only without a status_column and with keep');
    ELSEIF p_equal_rows = 1 AND v_keys IS NOT NULL THEN
        CALL mq_raise_error('invalid_argument', 'equal_rows: only without key_columns');
    END IF;

    IF v_keys IS NULL THEN
        IF COALESCE(p_equal_rows, 0) = 0 THEN
            CALL mq_raise_error('unsuitable_table', CONCAT('equal rows of ', v_label,
                ' cannot be told apart: give key_columns, or equal_rows 1'));
        END IF;
        SELECT MIN(c.column_name) INTO v_bad
        FROM information_schema.columns AS c
        WHERE c.table_schema = v_schema AND c.table_name = v_table
            AND NOT CONVERT(c.column_name USING utf8mb4) <=> v_status COLLATE utf8mb4_general_ci
            AND c.data_type NOT IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'year', 'bit', 'char',
                'varchar', 'tinytext',
                'text', 'enum', 'set', 'binary', 'varbinary', 'date', 'datetime', 'timestamp', 'time', 'uuid', 'inet4', 'inet6');
        IF v_bad IS NOT NULL THEN
            CALL mq_raise_error('unsuitable_table', CONCAT('without key_columns all columns are compared, and ', LEFT(v_bad, 40),
                ' cannot be'));
        END IF;
    ELSE
        SELECT k.index_name INTO v_key_index
        FROM (
            SELECT s.index_name, MAX(s.non_unique) AS non_unique,
                MAX(s.nullable = 'YES' OR j.name IS NULL OR s.sub_part IS NOT NULL) AS bad
            FROM information_schema.statistics AS s
            LEFT JOIN JSON_TABLE(v_keys, '$[*]' COLUMNS (name varchar(200) CHARACTER SET utf8mb4 PATH '$')) AS j
                ON CONVERT(s.column_name USING utf8mb4) = CONVERT(j.name USING utf8mb4) COLLATE utf8mb4_general_ci
            WHERE s.table_schema = v_schema AND s.table_name = v_table
            GROUP BY s.index_name
            HAVING non_unique = 0 AND bad = 0
        ) AS k
        ORDER BY k.index_name <> 'PRIMARY', k.index_name LIMIT 1;
        IF v_key_index IS NULL THEN
            CALL mq_raise_error('unsuitable_table', CONCAT('key_columns: ', v_label,
                ' has no primary key or unique index of NOT NULL columns within'));
        END IF;
    END IF;

    SET v_wanted = CONCAT_WS(', ', CONCAT('`', REPLACE(v_status, '`', '``'), '`'),
        IF(v_order IS NULL, v_list, CONCAT('`', REPLACE(v_order, '`', '``'), '`')));
    IF v_status IS NULL AND NOT v_delete THEN
        IF p_late_seconds IS NULL THEN
            CALL mq_raise_error('unsuitable_table',
                'rows that come late in the order would be missed: give late_seconds, or 0 to accept that');
        END IF;
        IF v_order IS NULL AND COALESCE(JSON_LENGTH(v_keys), 0) <> 1 THEN
            CALL mq_raise_error('unsuitable_table',
                'without a status and with keep rows are claimed in an order: give order_column');
        END IF;
        SET v_order = COALESCE(v_order, JSON_UNQUOTE(JSON_EXTRACT(v_keys, '$[0]')));
        SELECT COUNT(*) INTO v_count
        FROM information_schema.columns AS c
        WHERE c.table_schema = v_schema AND c.table_name = v_table AND c.column_name = v_order AND c.is_nullable = 'NO'
            AND c.data_type IN ('tinyint', 'smallint', 'mediumint', 'int', 'bigint', 'decimal', 'double', 'year', 'char',
                'varchar', 'date',
                'datetime', 'timestamp', 'time');
        IF v_count = 0 THEN
            CALL mq_raise_error('unsuitable_table', CONCAT('order_column: ', LEFT(v_order, 40),
                ' must be NOT NULL, and a number, a text or a time'));
        END IF;
        SET v_wanted = CONCAT('`', REPLACE(v_order, '`', '``'), '`');
    ELSEIF v_status IS NULL AND v_keys IS NULL THEN
        SET v_wanted = '';
    END IF;
    IF v_wanted <> '' THEN
        -- Behind a secondary index stands the primary key.
        SELECT i.index_name INTO v_claim_index
        FROM (
            SELECT s.index_name, CONCAT(GROUP_CONCAT('`', REPLACE(s.column_name, '`', '``'),
                '`' ORDER BY s.seq_in_index SEPARATOR ', '),
                    IF(s.index_name = 'PRIMARY', '', COALESCE(CONCAT(', ', MAX(p.columns_)), ''))) AS columns_,
                MAX(s.sub_part IS NOT NULL OR COALESCE(s.collation, '') <> 'A') AS bad
            FROM information_schema.statistics AS s
            LEFT JOIN (
                SELECT GROUP_CONCAT('`', REPLACE(column_name, '`', '``'), '`' ORDER BY seq_in_index SEPARATOR ', ') AS columns_
                FROM information_schema.statistics
                WHERE table_schema = v_schema AND table_name = v_table AND index_name = 'PRIMARY'
            ) AS p ON TRUE
            WHERE s.table_schema = v_schema AND s.table_name = v_table AND s.index_type = 'BTREE'
            GROUP BY s.index_name
        ) AS i
        WHERE i.bad = 0 AND LEFT(CONCAT(i.columns_, ', '), CHAR_LENGTH(v_wanted) + 2) = CONCAT(v_wanted, ', ')
        ORDER BY CHAR_LENGTH(i.columns_), i.index_name LIMIT 1;
        IF v_claim_index IS NULL THEN
            CALL mq_raise_error('unsuitable_table', CONCAT('needs: CREATE INDEX mq_claim ON ', v_quoted, ' (', v_wanted, ')'));
        END IF;
    END IF;

    -- The statements themselves are tried, on no row.
    SET v_rights = IF(v_status IS NULL AND NOT v_delete, 'SELECT', IF(v_delete, 'SELECT, UPDATE, DELETE', 'SELECT, UPDATE'));
    BEGIN
        DECLARE EXIT HANDLER FOR 1142, 1143
            CALL mq_raise_error('unsuitable_table', CONCAT('GRANT ', v_rights, ' ON ', v_quoted,
                ' TO ''mq_owner''@''localhost'''));
        CALL mq_run(CONCAT('SELECT COUNT(*) INTO @mq_found FROM (SELECT * FROM ', v_quoted, ' WHERE FALSE',
            IF(v_rights = 'SELECT', '', ' FOR UPDATE'), ') AS t'), v_count);
        IF v_status IS NOT NULL THEN
            CALL mq_run(CONCAT('UPDATE ', v_quoted, ' SET `', REPLACE(v_status, '`', '``'), '` = `', REPLACE(v_status, '`', '``'),
                '` WHERE FALSE'), v_count);
        END IF;
        IF v_delete THEN
            CALL mq_run(CONCAT('DELETE FROM ', v_quoted, ' WHERE FALSE'), v_count);
        END IF;
    END;

    SELECT MIN(p.name) INTO v_bad
    FROM mq_polled AS p
    WHERE p.quoted = v_quoted AND p.name <> p_name AND (p.status_column IS NOT NULL OR p.on_complete = 'delete')
        AND (v_status IS NOT NULL OR v_delete) AND p.status_column <=> v_status AND p.ready_value <=> p_ready_value;
    IF v_bad IS NOT NULL THEN
        CALL mq_raise_error('already_exists', CONCAT(v_label, ' is adopted as ', LEFT(v_bad, 40),
            ' already: its rows would be claimed twice'));
    END IF;
    INSERT IGNORE INTO mq_polled (name, quoted, key_columns, order_column, status_column, ready_value, active_value, done_value,
        error_value,
        on_complete, late_seconds, equal_rows, max_attempts, key_index, claim_index)
    VALUES (p_name, v_quoted, v_keys, v_given_order, v_status, p_ready_value, p_active_value, p_done_value, p_error_value,
        IF(v_delete, 'delete', 'keep'), p_late_seconds, COALESCE(p_equal_rows, 0), COALESCE(p_max_attempts, 10), v_key_index,
            v_claim_index);
    SET v_created = ROW_COUNT();
    IF v_created = 0 THEN
        SELECT COUNT(*) INTO v_same
        FROM mq_polled AS p
        WHERE p.name = p_name AND p.quoted = v_quoted AND p.key_columns <=> v_keys AND p.order_column <=> v_given_order
            AND p.status_column <=> v_status AND p.ready_value <=> p_ready_value AND p.active_value <=> p_active_value
            AND p.done_value <=> p_done_value AND p.error_value <=> p_error_value AND p.on_complete = IF(v_delete, 'delete',
                'keep')
            AND p.late_seconds <=> p_late_seconds AND p.equal_rows = COALESCE(p_equal_rows, 0)
            AND p.max_attempts = COALESCE(p_max_attempts, 10);
        IF v_same = 0 THEN
            CALL mq_raise_error('already_exists', CONCAT('name: ', LEFT(p_name, 60), ' has other settings: release_table first'));
        END IF;
    END IF;
    SELECT v_created AS created;
    CALL mq_end_call(v_own);
END//

DELIMITER ;

-- add_polled: store a polling table.
-- Arguments:   p_table (a JSON object as imq_polled_settings returns it)
-- Returns:     p_created: 1; 0 when the table is already adopted with the same settings
--
-- Callers can also call it directly: it refuses tables that the caller may not change. Nothing in p_table is executed: each
-- call reads the names from the catalog and quotes them, and writes values in hexadecimal.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_add_polled(
    IN p_table longtext CHARACTER SET utf8mb4, OUT p_created int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_name, v_schema, v_here, v_name_of_table, v_order, v_status, v_key_index, v_claim_index,
        v_other varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_idents, v_keys, v_ready, v_active, v_done, v_error longtext CHARACTER SET utf8mb4;
    DECLARE v_deletes, v_equal tinyint;
    DECLARE v_late, v_max, v_same int;
    SELECT s.name, s.schema_, IF(s.schema_ = DATABASE(), '', s.schema_), s.table_, s.ident_columns, s.keys_, s.order_,
        s.status_, s.ready, s.active, s.done, s.error, s.deletes, s.late, s.equal_, s.max_, s.key_index, s.claim_index
    INTO v_name, v_schema, v_here, v_name_of_table, v_idents, v_keys, v_order, v_status, v_ready, v_active, v_done,
        v_error, v_deletes, v_late, v_equal, v_max, v_key_index, v_claim_index
    FROM JSON_TABLE(p_table, '$' COLUMNS (
        name varchar(200) CHARACTER SET utf8mb4 PATH '$.name',
        schema_ varchar(64) CHARACTER SET utf8mb4 PATH '$.schema', table_ varchar(64) CHARACTER SET utf8mb4 PATH '$.table',
        ident_columns longtext CHARACTER SET utf8mb4 PATH '$.ident_columns', keys_ longtext CHARACTER SET utf8mb4 PATH '$.keys',
        order_ varchar(64) CHARACTER SET utf8mb4 PATH '$.order', status_ varchar(64) CHARACTER SET utf8mb4 PATH '$.status',
        ready longtext CHARACTER SET utf8mb4 PATH '$.ready', active longtext CHARACTER SET utf8mb4 PATH '$.active',
        done longtext CHARACTER SET utf8mb4 PATH '$.done', error longtext CHARACTER SET utf8mb4 PATH '$.error',
        deletes tinyint PATH '$.deletes', late int PATH '$.late', equal_ tinyint PATH '$.equal', max_ int PATH '$.max',
        key_index varchar(64) CHARACTER SET utf8mb4 PATH '$.key_index',
            claim_index varchar(64) CHARACTER SET utf8mb4 PATH '$.claim_index'
    )) AS s;
    CALL imq_require_use(v_schema, v_name_of_table,
        CONCAT('Select', IF(v_status IS NULL, '', ',Update'), IF(v_deletes, ',Delete', '')),
        LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1));
    SELECT MIN(p.name) INTO v_other
    FROM mq_polled AS p
    WHERE p.table_schema = v_here AND p.table_name = v_name_of_table AND p.name <> v_name
        AND (p.status_column IS NOT NULL OR p.on_complete = 'delete') AND (v_status IS NOT NULL OR v_deletes) AND p.status_column <=> v_status AND p.ready_value <=> v_ready;
    IF v_other IS NOT NULL THEN
        CALL imq_raise_error('already_exists', CONCAT(LEFT(v_name_of_table, 40), ' is adopted as ', LEFT(v_other, 40),
            ' already: its rows would be claimed twice'));
    END IF;
    INSERT IGNORE INTO mq_polled (name, table_schema, table_name, ident_columns, key_columns, order_column, status_column,
        ready_value, active_value,
        done_value, error_value, on_complete, late_seconds, equal_rows, max_attempts, key_index, claim_index, adopted_by)
    VALUES (v_name, v_here, v_name_of_table, v_idents, v_keys, v_order, v_status, v_ready, v_active, v_done, v_error,
        IF(v_deletes, 'delete', 'keep'), v_late, v_equal, v_max, v_key_index, v_claim_index,
        LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1));
    SET p_created = ROW_COUNT();
    IF p_created = 0 THEN
        SELECT COUNT(*) INTO v_same
        FROM mq_polled AS p
        WHERE p.name = v_name AND p.table_schema = v_here AND p.table_name = v_name_of_table AND p.key_columns <=> v_keys
            AND p.order_column <=> v_order AND p.status_column <=> v_status AND p.ready_value <=> v_ready
            AND p.active_value <=> v_active AND p.done_value <=> v_done AND p.error_value <=> v_error AND p.on_complete = IF(v_deletes, 'delete', 'keep')
            AND p.late_seconds <=> v_late AND p.equal_rows = v_equal AND p.max_attempts = v_max;
        IF v_same = 0 THEN
            CALL imq_raise_error('already_exists', CONCAT('name: ', LEFT(v_name, 60), ' has other settings: unadopt_table first'));
        END IF;
    END IF;
END

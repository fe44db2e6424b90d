-- take_due: claim again what waits for another attempt and is due.
-- Arguments:   p_shape (mq_polled_shape), p_batch_key and p_due (mq_open_claim)
-- Returns:     p_rows: '[id,row],...' of what is claimed, NULL for none
-- Errors:      those of the table's own
-- Transaction: joins the caller's; passes over rows that other sessions have locked
-- Example:     CALL mq_take_due(v_shape, v_key, v_due, v_rows);

DROP PROCEDURE IF EXISTS mq_take_due;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_take_due(
    IN p_shape longtext CHARACTER SET utf8mb4,
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4,
    IN p_due longtext CHARACTER SET utf8mb4,
    OUT p_rows longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    DECLARE v_quoted, v_columns, v_keys, v_ident, v_row, v_status, v_by_key, v_ready, v_active, v_lock longtext CHARACTER SET utf8mb4;
    DECLARE v_items, v_literals, v_from, v_found, v_there, v_each, v_condition, v_taken, v_dying longtext CHARACTER SET utf8mb4;
    DECLARE v_flag, v_end tinyint DEFAULT 0;
    DECLARE v_copies, v_failed, v_dead, v_gone bigint;
    DECLARE c_groups CURSOR FOR
        SELECT d.ident, COUNT(*)
        FROM JSON_TABLE(p_due, '$[*]' COLUMNS (id bigint PATH '$[0]', ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
            active tinyint PATH '$[2]')) AS d
        WHERE d.active = v_flag
        GROUP BY d.ident
        ORDER BY MIN(d.id);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = 1;
    SELECT s.quoted, s.columns_, s.keys_, s.ident, s.row_json, s.status, s.by_key, s.ready, s.active, IF(s.shape IN ('b', 'd'), '', ' FOR UPDATE SKIP LOCKED')
    INTO v_quoted, v_columns, v_keys, v_ident, v_row, v_status, v_by_key, v_ready, v_active, v_lock
    FROM JSON_TABLE(p_shape, '$' COLUMNS (
        shape varchar(1) CHARACTER SET utf8mb4 PATH '$.shape', quoted longtext CHARACTER SET utf8mb4 PATH '$.quoted',
        columns_ longtext CHARACTER SET utf8mb4 PATH '$.columns', keys_ longtext CHARACTER SET utf8mb4 PATH '$.keys',
        ident longtext CHARACTER SET utf8mb4 PATH '$.ident', row_json longtext CHARACTER SET utf8mb4 PATH '$.row',
        status longtext CHARACTER SET utf8mb4 PATH '$.status', by_key longtext CHARACTER SET utf8mb4 PATH '$.by_key',
        ready longtext CHARACTER SET utf8mb4 PATH '$.ready', active longtext CHARACTER SET utf8mb4 PATH '$.active'
    )) AS s;
    SET p_rows = NULL;
    WHILE v_flag < 2 DO
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(d.id, d.ident) ORDER BY d.id), ']') INTO v_items
        FROM JSON_TABLE(p_due, '$[*]' COLUMNS (id bigint PATH '$[0]', ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
            active tinyint PATH '$[2]')) AS d
        WHERE d.active = v_flag;
        IF v_items IS NOT NULL THEN
            SET v_from = IF(v_status = '', '', CONCAT(' AND ', v_status, IF(v_flag, CONCAT(' = ', v_active),
                IF(v_ready = '', ' IS NULL', CONCAT(' = ', v_ready)))));
            IF v_keys <> '' THEN
                CALL mq_key_literals(v_columns, v_items, v_literals);
                SET v_from = CONCAT(' FROM ', v_quoted, ' AS t ', v_by_key, ' WHERE ', v_keys, ' IN (', v_literals, ')', v_from);
                CALL mq_run(CONCAT('SELECT CONCAT(''['', GROUP_CONCAT(CONCAT(''["'', r.i, ''",'', JSON_QUOTE(r.j), '',1]'')), '']'') INTO @mq_found '
                    'FROM (SELECT ', v_ident, ' AS i, ', v_row, ' AS j', v_from, v_lock, ') AS r'), v_copies);
                SET v_found = @mq_found;
                -- What is not found may be locked, or gone.
                CALL mq_run(CONCAT('SELECT CONCAT(''['', GROUP_CONCAT(CONCAT(''["'', ', v_ident, ', ''",1]'')), '']'') INTO @mq_found', v_from), v_copies);
                SET v_there = @mq_found;
            ELSE
                SET v_found = NULL, v_there = NULL;
                OPEN c_groups;
                SET v_end = 0;
                FETCH c_groups INTO v_each, v_copies;
                WHILE NOT v_end DO
                    CALL mq_row_condition(p_shape, v_each, v_condition);
                    SET v_condition = CONCAT(' FROM ',
                        '(SELECT * FROM ', v_quoted, ' WHERE ', v_condition, v_from, ' LIMIT ', v_copies);
                    CALL mq_run(CONCAT('SELECT COUNT(*), MAX(', v_row, ') INTO @mq_n, @mq_found', v_condition, v_lock, ') AS t'), v_gone);
                    IF @mq_n > 0 THEN
                        SET v_found = CONCAT_WS(',', v_found, JSON_ARRAY(v_each, @mq_found, CAST(@mq_n AS signed)));
                    END IF;
                    CALL mq_run(CONCAT('SELECT COUNT(*) INTO @mq_n', v_condition, ') AS t'), v_gone);
                    SET v_there = CONCAT_WS(',', v_there, JSON_ARRAY(v_each, CAST(@mq_n AS signed)));
                    SET v_end = 0;
                    FETCH c_groups INTO v_each, v_copies;
                END WHILE;
                CLOSE c_groups;
                SET v_found = CONCAT('[', NULLIF(v_found, ''), ']'), v_there = CONCAT('[', NULLIF(v_there, ''), ']');
            END IF;
            CALL mq_hold_due(p_batch_key, v_flag, p_due, COALESCE(v_found, '[]'), v_there, v_taken, v_dying);
            SET p_rows = NULLIF(CONCAT_WS(',', p_rows, v_taken), '');
            IF v_dying IS NOT NULL THEN
                CALL mq_fail_rows(p_shape, p_batch_key, v_dying, 0, v_failed, v_dead, v_gone);
            END IF;
        END IF;
        SET v_flag = v_flag + 1;
    END WHILE;
    SET @mq_found = NULL, @mq_n = NULL;
END//

DELIMITER ;

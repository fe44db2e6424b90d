-- take_due: claim the rows whose retry is due.
-- Arguments:   p_shape (from imq_polled_shape), p_batch_key and p_due (from imq_open_claim)
-- Returns:     p_rows: '[id,row],...' of the claimed rows; NULL when there are none
-- Transaction: joins the caller's; skips rows that others have locked

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_take_due(
    IN p_shape longtext CHARACTER SET utf8mb4, IN p_batch_key varchar(36) CHARACTER SET utf8mb4,
    IN p_due longtext CHARACTER SET utf8mb4, OUT p_rows longtext CHARACTER SET utf8mb4
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_columns, v_keys, v_lock, v_is, v_items, v_literals, v_found, v_there, v_each, v_condition, v_taken,
        v_dying longtext CHARACTER SET utf8mb4;
    DECLARE v_find longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT CONCAT(''['', GROUP_CONCAT(CONCAT(''["'', r.i, ''",'', JSON_QUOTE(r.j), '',1]'')), '']'') INTO @mq_found
        FROM (SELECT {ident} AS i, {row} AS j FROM {table} AS t {by_key} WHERE {keys} IN ({literals}) AND {is} {lock}) AS r';
    -- A row that was not found may be locked or gone.
    DECLARE v_see longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT CONCAT(''['', GROUP_CONCAT(CONCAT(''["'', {ident}, ''",1]'')), '']'') INTO @mq_found
        FROM {table} AS t {by_key} WHERE {keys} IN ({literals}) AND {is}';
    DECLARE v_find_each longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT COUNT(*), MAX({row}) INTO @mq_n, @mq_found
        FROM (SELECT * FROM {table} WHERE {condition} LIMIT {copies} {lock}) AS t';
    DECLARE v_see_each longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT COUNT(*) INTO @mq_n FROM (SELECT * FROM {table} WHERE {condition} LIMIT {copies}) AS t';
    DECLARE v_flag, v_end tinyint DEFAULT 0;
    DECLARE v_copies, v_nothing, v_failed, v_dead, v_gone bigint;
    DECLARE c_groups CURSOR FOR
        SELECT d.ident, COUNT(*)
        FROM JSON_TABLE(p_due, '$[*]' COLUMNS (id bigint PATH '$[0]', ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
            active tinyint PATH '$[2]')) AS d
        WHERE d.active = v_flag
        GROUP BY d.ident
        ORDER BY MIN(d.id);
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = 1;
    SELECT s.columns_, s.keys_, IF(s.shape IN ('b', 'd'), '', 'FOR UPDATE SKIP LOCKED') INTO v_columns, v_keys, v_lock
    FROM JSON_TABLE(p_shape, '$' COLUMNS (shape varchar(1) CHARACTER SET utf8mb4 PATH '$.shape',
        columns_ longtext CHARACTER SET utf8mb4 PATH '$.columns', keys_ longtext CHARACTER SET utf8mb4 PATH '$.keys')) AS s;
    SET p_rows = NULL, v_find = REPLACE(v_find, '{lock}', v_lock), v_find_each = REPLACE(v_find_each, '{lock}', v_lock);
    WHILE v_flag < 2 DO
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(d.id, d.ident) ORDER BY d.id), ']') INTO v_items
        FROM JSON_TABLE(p_due, '$[*]' COLUMNS (id bigint PATH '$[0]', ident longtext CHARACTER SET utf8mb4 PATH '$[1]',
            active tinyint PATH '$[2]')) AS d
        WHERE d.active = v_flag;
        IF v_items IS NOT NULL THEN
            SET v_found = NULL, v_there = NULL, v_is = IF(v_flag, '{is_active}', '{is_ready}');
            IF v_keys <> '' THEN
                CALL imq_key_literals(v_columns, v_items, v_literals);
                CALL imq_run_template(p_shape, REPLACE(REPLACE(v_find, '{is}', v_is), '{literals}', v_literals), v_nothing);
                SET v_found = @mq_found;
                CALL imq_run_template(p_shape, REPLACE(REPLACE(v_see, '{is}', v_is), '{literals}', v_literals), v_nothing);
                SET v_there = @mq_found;
            ELSE
                OPEN c_groups;
                SET v_end = 0;
                FETCH c_groups INTO v_each, v_copies;
                WHILE NOT v_end DO
                    CALL imq_row_condition(p_shape, v_each, v_condition);
                    SET v_condition = CONCAT(v_condition, ' AND ', v_is);
                    CALL imq_run_template(p_shape,
                        REPLACE(REPLACE(v_find_each, '{copies}', v_copies), '{condition}', v_condition), v_nothing);
                    IF @mq_n > 0 THEN
                        SET v_found = CONCAT_WS(',', v_found, JSON_ARRAY(v_each, @mq_found, CAST(@mq_n AS signed)));
                    END IF;
                    CALL imq_run_template(p_shape,
                        REPLACE(REPLACE(v_see_each, '{copies}', v_copies), '{condition}', v_condition), v_nothing);
                    SET v_there = CONCAT_WS(',', v_there, JSON_ARRAY(v_each, CAST(@mq_n AS signed)));
                    SET v_end = 0;
                    FETCH c_groups INTO v_each, v_copies;
                END WHILE;
                CLOSE c_groups;
                SET v_found = CONCAT('[', NULLIF(v_found, ''), ']'), v_there = CONCAT('[', NULLIF(v_there, ''), ']');
            END IF;
            CALL imq_hold_due(p_batch_key, v_flag, p_due, COALESCE(v_found, '[]'), v_there, v_taken, v_dying);
            SET p_rows = NULLIF(CONCAT_WS(',', p_rows, v_taken), '');
            IF v_dying IS NOT NULL THEN
                CALL imq_fail_rows(p_shape, p_batch_key, v_dying, 0, v_failed, v_dead, v_gone);
            END IF;
        END IF;
        SET v_flag = v_flag + 1;
    END WHILE;
    SET @mq_found = NULL, @mq_n = NULL;
END

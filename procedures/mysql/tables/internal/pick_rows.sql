-- pick_rows: claim rows of an adopted table that nobody has claimed yet.
-- Arguments:   p_shape (mq_polled_shape), p_table and p_batch_key (mq_open_claim), p_size, p_active (1: rows at active_value that no
--              entry stands for), p_taken (how many rows there may be that entries stand for), p_place (1: begin at the place of
--              the last claim)
-- Returns:     p_rows: '[id,row],...' of what is claimed, NULL for none; p_count
-- Errors:      those of the table's own
-- Transaction: joins the caller's; passes over rows that other sessions have locked, where it locks rows at all
-- Example:     CALL mq_pick_rows(v_shape, v_table, v_key, 100, 0, 0, 0, v_rows, v_count);

DROP PROCEDURE IF EXISTS mq_pick_rows;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_pick_rows(
    IN p_shape longtext CHARACTER SET utf8mb4,
    IN p_table longtext CHARACTER SET utf8mb4,
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_active tinyint,
    IN p_taken bigint,
    IN p_place tinyint,
    OUT p_rows longtext CHARACTER SET utf8mb4,
    OUT p_count bigint
)
SQL SECURITY INVOKER
MODIFIES SQL DATA
BEGIN
    DECLARE v_letter varchar(1) CHARACTER SET utf8mb4;
    DECLARE v_quoted, v_columns, v_keys, v_ident, v_key, v_row, v_status, v_sort, v_sort_as, v_sort_by, v_ordered, v_place, v_place_columns, v_by_key,
        v_by_claim, v_ready, v_active, v_where, v_picked, v_listed, v_from, v_from_hash, v_free, v_held, v_literals, v_added, v_settled,
        v_high, v_zone longtext CHARACTER SET utf8mb4;
    DECLARE v_copies, v_chunk, v_offset, v_added_count, v_nothing bigint DEFAULT 0;
    DECLARE v_wanted tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        IF v_zone IS NOT NULL THEN
            SET time_zone = v_zone;
        END IF;
        RESIGNAL;
    END;
    SELECT s.shape, s.quoted, s.columns_, s.keys_, s.ident, s.key_json, s.row_json, s.status, s.sort, s.sort_as, s.sort_by, s.ordered, s.place,
        JSON_ARRAY(JSON_ARRAY('', s.place_class)), s.by_key, s.by_claim, s.ready, s.active
    INTO v_letter, v_quoted, v_columns, v_keys, v_ident, v_key, v_row, v_status, v_sort, v_sort_as, v_sort_by, v_ordered, v_place, v_place_columns,
        v_by_key, v_by_claim, v_ready, v_active
    FROM JSON_TABLE(p_shape, '$' COLUMNS (
        shape varchar(1) CHARACTER SET utf8mb4 PATH '$.shape', quoted longtext CHARACTER SET utf8mb4 PATH '$.quoted',
        columns_ longtext CHARACTER SET utf8mb4 PATH '$.columns', keys_ longtext CHARACTER SET utf8mb4 PATH '$.keys',
        ident longtext CHARACTER SET utf8mb4 PATH '$.ident', key_json longtext CHARACTER SET utf8mb4 PATH '$.key',
        row_json longtext CHARACTER SET utf8mb4 PATH '$.row', status longtext CHARACTER SET utf8mb4 PATH '$.status',
        sort longtext CHARACTER SET utf8mb4 PATH '$.sort', sort_as longtext CHARACTER SET utf8mb4 PATH '$.sort_as',
        sort_by longtext CHARACTER SET utf8mb4 PATH '$.sort_by', ordered longtext CHARACTER SET utf8mb4 PATH '$.ordered',
        place longtext CHARACTER SET utf8mb4 PATH '$.place', place_class varchar(1) CHARACTER SET utf8mb4 PATH '$.place_class',
        by_key longtext CHARACTER SET utf8mb4 PATH '$.by_key', by_claim longtext CHARACTER SET utf8mb4 PATH '$.by_claim',
        ready longtext CHARACTER SET utf8mb4 PATH '$.ready', active longtext CHARACTER SET utf8mb4 PATH '$.active'
    )) AS s;
    SELECT s.from_, s.from_hash, s.copies INTO v_from, v_from_hash, v_copies
    FROM JSON_TABLE(p_table, '$' COLUMNS (from_ longtext CHARACTER SET utf8mb4 PATH '$.from',
        from_hash longtext CHARACTER SET utf8mb4 PATH '$.from_hash', copies bigint PATH '$.copies')) AS s;
    IF v_from IS NOT NULL THEN
        CALL mq_key_literals(v_place_columns, JSON_ARRAY(JSON_ARRAY(0, v_from)), v_from);
    END IF;
    SET v_where = CONCAT(' WHERE ', IF(v_status = '', 'TRUE', CONCAT('t.', v_status, IF(p_active, CONCAT(' = ', v_active),
            IF(v_ready = '', ' IS NULL', CONCAT(' = ', v_ready))))), IF(p_place, CONCAT(' AND ', v_ordered, ' >= ', v_from), '')),
        v_picked = CONCAT('SELECT ', v_ident, ' AS i, ', v_key, ' AS k, ', v_row, ' AS j, ', IF(v_place = '', 'NULL', v_place), ' AS l, '),
        v_listed = 'SELECT COUNT(*), CONCAT(''['', GROUP_CONCAT(CONCAT(''["'', r.i, ''",'', JSON_QUOTE(r.k), '','', '
            'COALESCE(CONCAT(''"'', r.l, ''"''), ''null''), '','', JSON_QUOTE(r.j), '','', r.c, '']'') ORDER BY ',
        v_sort = IF(v_sort = '', '', CONCAT(' ORDER BY ', v_sort)), p_rows = NULL, p_count = 0;

    IF v_letter IN ('a', 'e') AND p_taken = 0 THEN
        CALL mq_list_rows(CONCAT(v_listed, v_sort_by, '), '']'') INTO @mq_n, @mq_found FROM (', v_picked, v_sort_as, ', ''null'' AS c FROM ', v_quoted,
            ' AS t ', v_by_claim, v_where, v_sort), p_size, ' FOR UPDATE SKIP LOCKED) AS r', v_free);
        CALL mq_add_claims(p_batch_key, p_active, v_free, NULL, p_size, p_rows, p_count);

    ELSEIF v_letter IN ('a', 'e') THEN
        -- Entries stand for some of these rows, and only mq_owner sees for which: first the keys, without a lock, in growing parts.
        SET v_chunk = p_size + 50;
        WHILE v_chunk > 0 AND p_count < p_size DO
            CALL mq_run(CONCAT('SELECT COUNT(*), CONCAT(''['', GROUP_CONCAT(CONCAT(''[0,"'', r.i, ''"]'') ORDER BY ', v_sort_by, '), '']'') '
                'INTO @mq_n, @mq_found FROM (SELECT ', v_ident, ' AS i, ', v_sort_as, ' FROM ', v_quoted, ' AS t ', v_by_claim, v_where, v_sort,
                ' LIMIT ', v_offset, ', ', v_chunk, ') AS r'), v_nothing);
            SET v_offset = v_offset + v_chunk, v_chunk = IF(@mq_n < v_chunk, 0, v_chunk * 4);
            CALL mq_free_rows(p_batch_key, p_active, COALESCE(@mq_found, '[]'), p_size - p_count, v_free);
            IF v_free IS NOT NULL THEN
                CALL mq_key_literals(v_columns, v_free, v_literals);
                CALL mq_list_rows(CONCAT(v_listed, v_sort_by, '), '']'') INTO @mq_n, @mq_found FROM (', v_picked, v_sort_as, ', ''null'' AS c FROM ', v_quoted,
                    ' AS t ', v_by_key, v_where, ' AND ', v_keys, ' IN (', v_literals, ')', v_sort), p_size - p_count, ' FOR UPDATE SKIP LOCKED) AS r', v_free);
                CALL mq_add_claims(p_batch_key, p_active, v_free, NULL, p_size - p_count, v_added, v_added_count);
                SET p_rows = NULLIF(CONCAT_WS(',', p_rows, v_added), ''), p_count = p_count + v_added_count;
            END IF;
        END WHILE;

    ELSEIF v_letter IN ('c', 'f') THEN
        -- Among so many rows there are p_size free ones, if the table has them. Without an active value nothing is written, and a
        -- lock would keep others from finishing the rows that are counted.
        -- Who finishes a row takes its entry away. Where that makes the row no longer ready, entries are counted first; where a row that
        -- has failed becomes ready again, rows are. What is counted too early then only makes the claim smaller.
        IF v_active = '' THEN
            CALL mq_held_copies(p_batch_key, v_held);
        END IF;
        CALL mq_list_rows(CONCAT(v_listed, v_sort_by, '), '']'') INTO @mq_n, @mq_found FROM (', v_picked, v_sort_as, ', ''null'' AS c FROM ', v_quoted,
            ' AS t ', v_by_claim, v_where, v_sort), p_size + p_taken, IF(v_active = '', ') AS r', ' FOR UPDATE SKIP LOCKED) AS r'), v_free);
        CALL mq_add_claims(p_batch_key, p_active, v_free, v_held, p_size, p_rows, p_count);

    ELSE
        -- In the session's zone an hour a year means two.
        SET v_zone = @@SESSION.time_zone;
        SET time_zone = '+00:00';
        CALL mq_settled_place(p_batch_key, NULL, v_settled, v_wanted);
        IF v_wanted THEN
            SET @mq_found = NULL;
            CALL mq_run(CONCAT('SELECT ', v_place, ' INTO @mq_found FROM ', v_quoted, ' AS t ', v_by_claim, ' ORDER BY ', v_ordered, ' DESC LIMIT 1'), v_nothing);
            IF @mq_found IS NOT NULL THEN
                CALL mq_settled_place(p_batch_key, @mq_found, v_settled, v_wanted);
            END IF;
        END IF;
        IF v_settled IS NOT NULL THEN
            CALL mq_key_literals(v_place_columns, JSON_ARRAY(JSON_ARRAY(0, v_settled)), v_settled);
            -- So that no more than the rows of these order values are sorted.
            SET @mq_found = NULL;
            CALL mq_run(CONCAT('SELECT ', v_place, ' INTO @mq_found FROM ', v_quoted, ' AS t ', v_by_claim, ' WHERE ', v_ordered, ' <= ',
                v_settled, IF(v_from IS NULL, '', CONCAT(' AND ', v_ordered, ' > ', v_from)), ' ORDER BY ', v_ordered, ' LIMIT ',
                p_size - 1, ', 1'), v_nothing);
            SET v_high = v_settled;
            IF @mq_found IS NOT NULL THEN
                CALL mq_key_literals(v_place_columns, JSON_ARRAY(JSON_ARRAY(0, @mq_found)), v_high);
            END IF;
            CALL mq_list_rows(CONCAT(v_listed, 'r.o, r.h, r.c), '']'') INTO @mq_n, @mq_found FROM (SELECT x.* FROM (SELECT y.*, '
                'ROW_NUMBER() OVER (PARTITION BY y.o, y.h ORDER BY y.h) AS c FROM (', v_picked, v_ordered, ' AS o, UNHEX(SHA2(', v_ident, ', 256)) AS h FROM ',
                v_quoted, ' AS t ', v_by_claim, ' WHERE ', v_ordered, ' <= ', v_high,
                IF(v_from IS NULL, '', CONCAT(' AND ', v_ordered, ' >= ', v_from)), ') AS y) AS x ',
                IF(v_from IS NULL, '', CONCAT('WHERE x.o > ', v_from, ' OR x.h > x''', v_from_hash, ''' OR x.h = x''', v_from_hash,
                    ''' AND x.c > ', v_copies)), ' ORDER BY x.o, x.h, x.c'), p_size, ') AS r', v_free);
            CALL mq_add_claims(p_batch_key, 0, v_free, NULL, p_size, p_rows, p_count);
        END IF;
        SET time_zone = v_zone, v_zone = NULL;
    END IF;
    SET @mq_found = NULL, @mq_n = NULL;
END//

DELIMITER ;

-- pick_rows: claim rows of an adopted table that nobody has claimed yet.
-- Arguments:   p_name (whose row the caller has locked), p_shape (mq_polled_shape), p_size, p_place (1: begin at the
--              place of the last claim),
--              p_batch_key, p_reader
-- Returns:     p_count
-- Errors:      none
-- Transaction: joins the caller's; passes over rows that other sessions have locked, where it locks rows at all
-- Example:     CALL mq_pick_rows('orders', v_shape, 100, 0, v_key, 'worker-1', v_count);

DROP PROCEDURE IF EXISTS mq_pick_rows;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_pick_rows(
    IN p_name varchar(200) CHARACTER SET utf8mb4,
    IN p_shape longtext CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_place tinyint,
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4,
    IN p_reader varchar(200) CHARACTER SET utf8mb4,
    OUT p_count bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_letter varchar(1) CHARACTER SET utf8mb4;
    DECLARE v_quoted, v_ident, v_key, v_row, v_status, v_sort, v_ordered, v_place, v_by_claim, v_ready, v_active
        longtext CHARACTER SET utf8mb4;
    DECLARE v_insert, v_columns, v_where, v_dead, v_from, v_settled, v_high, v_zone longtext CHARACTER SET utf8mb4;
    DECLARE v_place_hash varchar(70) CHARACTER SET ascii;
    DECLARE v_taken, v_copies bigint;
    DECLARE v_late int;
    DECLARE v_seen datetime(6);
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        IF v_zone IS NOT NULL THEN
            SET time_zone = v_zone;
        END IF;
        RESIGNAL;
    END;
    SELECT shape, quoted, ident, key_json, row_json, status, sort, ordered, place, by_claim, ready, active
    INTO v_letter, v_quoted, v_ident, v_key, v_row, v_status, v_sort, v_ordered, v_place, v_by_claim, v_ready, v_active
    FROM JSON_TABLE(p_shape, '$' COLUMNS (
        shape varchar(1) CHARACTER SET utf8mb4 PATH '$.shape', quoted longtext CHARACTER SET utf8mb4 PATH '$.quoted',
        ident longtext CHARACTER SET utf8mb4 PATH '$.ident', key_json longtext CHARACTER SET utf8mb4 PATH '$.key',
        row_json longtext CHARACTER SET utf8mb4 PATH '$.row', status longtext CHARACTER SET utf8mb4 PATH '$.status',
        sort longtext CHARACTER SET utf8mb4 PATH '$.sort', ordered longtext CHARACTER SET utf8mb4 PATH '$.ordered',
        place longtext CHARACTER SET utf8mb4 PATH '$.place', by_claim longtext CHARACTER SET utf8mb4 PATH '$.by_claim',
        ready longtext CHARACTER SET utf8mb4 PATH '$.ready', active longtext CHARACTER SET utf8mb4 PATH '$.active'
    )) AS s;
    SELECT place, CONCAT('x''', HEX(place_hash), ''''), copies, late_seconds INTO v_from, v_place_hash, v_copies, v_late
    FROM mq_polled WHERE name = p_name;
    SET v_insert = CONCAT('INSERT INTO mq_polled_row (batch_key, run_at, attempts, active, state, name, reader, '
            'ident_hash, ident, key_json, row_json, place, copies) SELECT ''', p_batch_key, ''', ''', v_now, ''', 1, 0, ''A'', _utf8mb4 x''', HEX(p_name),
                ''', _utf8mb4 x''',
            HEX(p_reader), ''', '),
        v_columns = CONCAT('UNHEX(SHA2(', v_ident, ', 256)) AS h, ', v_ident, ' AS i, ', v_key, ' AS k, ', v_row, ' AS j, ',
            IF(v_place = '', 'NULL', v_place), ' AS l'),
        v_where = IF(v_status = '', 'TRUE', CONCAT('t.', v_status, IF(v_ready = '', ' IS NULL', CONCAT(' = ', v_ready)))),
        -- With a status the dead have one of their own: whoever makes such a row ready again by hand wants it claimed.
        v_dead = IF(v_status = '', '', ' AND p.state <> ''E'''),
        v_sort = IF(v_sort = '', '', CONCAT(' ORDER BY ', v_sort));

    IF v_letter IN ('a', 'e') THEN
        CALL mq_run(CONCAT(v_insert, v_columns, ', 0 FROM ', v_quoted, ' AS t ', v_by_claim, ' WHERE ', v_where,
            IF(p_place, CONCAT(' AND ', v_ordered, ' >= ', v_from), ''),
            -- A join could be sorted after the whole backlog is read.
            ' AND (SELECT COUNT(*) FROM mq_polled_row AS p WHERE p.name = _utf8mb4 x''', HEX(p_name),
            ''' AND p.ident_hash = UNHEX(SHA2(', v_ident, ', 256))', v_dead, ') = 0', v_sort, ' LIMIT ', p_size,
                ' FOR UPDATE SKIP LOCKED'),
            p_count);

    ELSEIF v_letter IN ('c', 'f') THEN
        SELECT COUNT(*) INTO v_taken
        FROM mq_polled_row WHERE name = p_name AND active = 0 AND (state <> 'E' OR v_status = '');
        -- Among so many rows there are p_size free ones, if the table has them. Without an active value nothing is written, and a
        -- lock would keep others from finishing the rows that are counted.
        CALL mq_run(CONCAT(v_insert,
            'x.h, x.i, x.k, x.j, x.l, x.n FROM (SELECT y.*, ROW_NUMBER() OVER (PARTITION BY y.h ORDER BY y.o) AS n FROM ('
            'SELECT ', v_columns, ', ', IF(v_ordered = '', '0', v_ordered), ' AS o FROM ', v_quoted, ' AS t ', v_by_claim,
                ' WHERE ', v_where,
            v_sort, ' LIMIT ', p_size + v_taken, IF(v_active = '', '', ' FOR UPDATE SKIP LOCKED'), ') AS y) AS x '
            'WHERE x.n > (SELECT COUNT(*) FROM mq_polled_row AS p WHERE p.name = _utf8mb4 x''', HEX(p_name),
            ''' AND p.ident_hash = x.h AND p.active = 0', v_dead, ') ORDER BY x.o LIMIT ', p_size), p_count);

    ELSE
        -- In the session's zone an hour a year means two.
        SET v_zone = @@SESSION.time_zone;
        SET time_zone = '+00:00';
        SELECT MAX(seen_at) INTO v_seen FROM mq_polled_mark WHERE name = p_name;
        IF v_late = 0 OR v_seen IS NULL OR v_seen <= v_now - INTERVAL GREATEST(1, v_late DIV 10) SECOND THEN
            SET @mq_found = NULL;
            CALL mq_run(CONCAT('SELECT ', v_place, ' INTO @mq_found FROM ', v_quoted, ' AS t ', v_by_claim, ' ORDER BY ',
                v_ordered,
                ' DESC LIMIT 1'), p_count);
            SET v_settled = @mq_found;
            IF v_late > 0 AND v_settled IS NOT NULL THEN
                INSERT INTO mq_polled_mark (name, seen_at, place) VALUES (p_name, v_now, v_settled);
            END IF;
        END IF;
        IF v_late > 0 THEN
            SET v_settled = NULL;
            SELECT MAX(seen_at) INTO v_seen FROM mq_polled_mark WHERE name = p_name AND seen_at <= v_now - INTERVAL v_late SECOND;
            SELECT MAX(place) INTO v_settled FROM mq_polled_mark WHERE name = p_name AND seen_at = v_seen;
            DELETE FROM mq_polled_mark WHERE name = p_name AND seen_at < v_seen;
        END IF;
        SET p_count = 0;
        IF v_settled IS NOT NULL THEN
            -- So that no more than the rows of these order values are sorted.
            SET @mq_found = NULL;
            CALL mq_run(CONCAT('SELECT ', v_place, ' INTO @mq_found FROM ', v_quoted, ' AS t ', v_by_claim, ' WHERE ',
                v_ordered, ' <= ',
                v_settled, IF(v_from IS NULL, '', CONCAT(' AND ', v_ordered, ' > ', v_from)), ' ORDER BY ', v_ordered, ' LIMIT ',
                p_size - 1, ', 1'), p_count);
            SET v_high = COALESCE(@mq_found, v_settled);
            CALL mq_run(CONCAT(v_insert,
                'x.h, x.i, x.k, x.j, x.l, x.n FROM (SELECT y.*, ROW_NUMBER() OVER (PARTITION BY y.o, y.h ORDER BY y.h) AS n '
                'FROM (SELECT ', v_columns, ', ', v_ordered, ' AS o FROM ', v_quoted, ' AS t ', v_by_claim, ' WHERE ',
                    v_ordered, ' <= ', v_high,
                IF(v_from IS NULL, '', CONCAT(' AND ', v_ordered, ' >= ', v_from)), ') AS y) AS x ',
                IF(v_from IS NULL, '', CONCAT('WHERE x.o > ', v_from, ' OR x.h > ', v_place_hash, ' OR x.h = ', v_place_hash,
                    ' AND x.n > ',
                v_copies)), ' ORDER BY x.o, x.h, x.n LIMIT ', p_size), p_count);
        END IF;
        SET time_zone = v_zone, v_zone = NULL;
    END IF;
END//

DELIMITER ;

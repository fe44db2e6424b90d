-- take_due: claim again what waits for another attempt and is due.
-- Arguments:   p_name (whose row the caller has locked), p_shape (mq_polled_shape), p_size, p_batch_key, p_reader
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; passes over rows that other sessions have locked
-- Example:     CALL mq_take_due('orders', v_shape, 100, v_key, 'worker-1');

DROP PROCEDURE IF EXISTS mq_take_due;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_take_due(
    IN p_name varchar(200) CHARACTER SET utf8mb4,
    IN p_shape longtext CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4,
    IN p_reader varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_quoted, v_keys, v_ident, v_bare, v_row, v_status, v_by_key, v_ready, v_active longtext CHARACTER SET utf8mb4;
    DECLARE v_due, v_idents, v_members, v_where, v_claim, v_each, v_lock, v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_hash varchar(70) CHARACTER SET ascii;
    DECLARE v_flag, v_end tinyint DEFAULT 0;
    DECLARE v_max int;
    DECLARE v_copies, v_count, v_dead bigint;
    DECLARE c_groups CURSOR FOR
        SELECT MIN(e.ident), CONCAT('x''', HEX(e.ident_hash), ''''), COUNT(*), GROUP_CONCAT(e.id ORDER BY e.id)
        FROM JSON_TABLE(v_due, '$[*]' COLUMNS (id bigint PATH '$')) AS j
        STRAIGHT_JOIN mq_polled_row AS e ON e.id = j.id
        WHERE e.active = v_flag
        GROUP BY e.ident_hash;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_end = 1;
    SELECT CONCAT('[', GROUP_CONCAT(d.id), ']') INTO v_due
    FROM (
        SELECT id FROM mq_polled_row WHERE name = p_name AND state = 'N' AND run_at <= v_now ORDER BY run_at, id LIMIT p_size
    ) AS d;
    IF v_due IS NOT NULL THEN
        SELECT quoted, `keys`, ident, bare, row_json, status, by_key, ready, active, IF(shape IN ('b', 'd'), '',
            ' FOR UPDATE SKIP LOCKED')
        INTO v_quoted, v_keys, v_ident, v_bare, v_row, v_status, v_by_key, v_ready, v_active, v_lock
        FROM JSON_TABLE(p_shape, '$' COLUMNS (
            shape varchar(1) CHARACTER SET utf8mb4 PATH '$.shape', quoted longtext CHARACTER SET utf8mb4 PATH '$.quoted',
            `keys` longtext CHARACTER SET utf8mb4 PATH '$.keys', ident longtext CHARACTER SET utf8mb4 PATH '$.ident',
            bare longtext CHARACTER SET utf8mb4 PATH '$.bare', row_json longtext CHARACTER SET utf8mb4 PATH '$.row',
            status longtext CHARACTER SET utf8mb4 PATH '$.status', by_key longtext CHARACTER SET utf8mb4 PATH '$.by_key',
            ready longtext CHARACTER SET utf8mb4 PATH '$.ready', active longtext CHARACTER SET utf8mb4 PATH '$.active'
        )) AS s;
        SET v_claim = CONCAT(' SET e.state = ''A'', e.batch_key = ''', p_batch_key,
            ''', e.attempts = e.attempts + 1, e.reader = _utf8mb4 x''',
            HEX(p_reader), ''', e.row_json = ');
        WHILE v_flag < 2 DO
            SET v_where = IF(v_status = '', '', CONCAT(' AND ', v_status, IF(v_flag, CONCAT(' = ', v_active),
                IF(v_ready = '', ' IS NULL', CONCAT(' = ', v_ready)))));
            IF v_keys <> '' THEN
                SELECT GROUP_CONCAT(e.id), GROUP_CONCAT(e.ident) INTO v_members, v_idents
                FROM JSON_TABLE(v_due, '$[*]' COLUMNS (id bigint PATH '$')) AS j
                STRAIGHT_JOIN mq_polled_row AS e ON e.id = j.id
                WHERE e.active = v_flag;
                IF v_members IS NOT NULL THEN
                    SET v_where = CONCAT(' FROM ', v_quoted, ' AS t ', v_by_key, ' WHERE ', v_keys, ' IN (', v_idents, ')',
                        v_where);
                    CALL mq_run(CONCAT('UPDATE mq_polled_row AS e FORCE INDEX (PRIMARY) STRAIGHT_JOIN (SELECT UNHEX(SHA2(',
                        v_ident, ', 256)) AS h, ', v_row, ' AS j', v_where,
                        v_lock, ') AS f ON f.h = e.ident_hash', v_claim, 'f.j WHERE e.id IN (', v_members, ')'), v_count);
                    -- What is not found may be locked, or gone.
                    CALL mq_run(CONCAT('SELECT GROUP_CONCAT(''x'''''', SHA2(', v_ident, ', 256), '''''''') INTO @mq_found',
                        v_where), v_count);
                    CALL mq_run(CONCAT('DELETE FROM mq_polled_row WHERE id IN (', v_members,
                        ') AND state = ''N'' AND ident_hash NOT IN (',
                        COALESCE(@mq_found, '0'), ')'), v_count);
                END IF;
            ELSE
                OPEN c_groups;
                SET v_end = 0;
                FETCH c_groups INTO v_each, v_hash, v_copies, v_members;
                WHILE NOT v_end DO
                    SET v_each = CONCAT(' FROM ',
                        '(SELECT * FROM ', v_quoted, ' WHERE ', v_each, ' AND UNHEX(SHA2(', v_bare,
                        ', 256)) = ', v_hash, v_where,
                        ' LIMIT ', v_copies);
                    CALL mq_run(CONCAT('SELECT COUNT(*), MAX(', v_row, ') INTO @mq_found, @mq_row', v_each, v_lock, ') AS t'),
                        v_count);
                    SET v_count = @mq_found;
                    CALL mq_run(CONCAT('UPDATE mq_polled_row AS e', v_claim, '@mq_row WHERE e.id IN (', v_members,
                        ') ORDER BY e.id LIMIT ',
                        v_count), v_dead);
                    CALL mq_run(CONCAT('SELECT COUNT(*) INTO @mq_found', v_each, ') AS t'), v_dead);
                    IF @mq_found < v_copies THEN
                        CALL mq_run(CONCAT('DELETE FROM mq_polled_row WHERE id IN (', v_members,
                            ') AND state = ''N'' ORDER BY id DESC LIMIT ',
                            v_copies - GREATEST(@mq_found, v_count)), v_dead);
                    END IF;
                    SET v_end = 0;
                    FETCH c_groups INTO v_each, v_hash, v_copies, v_members;
                END WHILE;
                CLOSE c_groups;
            END IF;
            SET v_flag = v_flag + 1;
        END WHILE;
        SET @mq_found = NULL, @mq_row = NULL;
        SELECT max_attempts INTO v_max FROM mq_polled WHERE name = p_name;
        SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(id, -1, error)), ']') INTO v_items
        FROM mq_polled_row WHERE batch_key = p_batch_key AND attempts > v_max;
        IF v_items IS NOT NULL THEN
            UPDATE JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
            STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
            SET e.attempts = e.attempts - 1;
            CALL mq_fail_rows(p_name, p_shape, v_items, v_count, v_dead, v_copies);
        END IF;
    END IF;
END//

DELIMITER ;

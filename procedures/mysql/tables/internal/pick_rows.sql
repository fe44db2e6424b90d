-- pick_rows: claim rows of a polling table for the first time.
-- Arguments:   p_shape (from imq_polled_shape), p_table and p_batch_key (from imq_open_claim), p_size, p_active (1: rows at
--              active_value that have no entry), p_taken (how many rows may have entries), p_place (1: start at the
--              low-water mark)
-- Returns:     p_rows: '[id,row],...' of the claimed rows, NULL when there are none; p_count
-- Transaction: joins the caller's; skips rows that others have locked, where it locks rows at all

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_pick_rows(
    IN p_shape longtext CHARACTER SET utf8mb4, IN p_table longtext CHARACTER SET utf8mb4,
    IN p_batch_key varchar(36) CHARACTER SET utf8mb4, IN p_size int, IN p_active tinyint, IN p_taken bigint,
    IN p_place tinyint, OUT p_rows longtext CHARACTER SET utf8mb4, OUT p_count bigint
)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_letter varchar(1) CHARACTER SET utf8mb4;
    DECLARE v_columns, v_sort_by, v_active, v_place_columns, v_from, v_from_hash, v_new, v_free, v_held, v_literals,
        v_added, v_settled, v_high, v_zone longtext CHARACTER SET utf8mb4;
    DECLARE v_copies, v_chunk, v_offset, v_added_count, v_nothing bigint DEFAULT 0;
    DECLARE v_wanted tinyint;
    DECLARE v_list longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT COUNT(*), CONCAT(''['', GROUP_CONCAT(CONCAT(''["'', r.i, ''",'', JSON_QUOTE(r.k), '','',
            COALESCE(CONCAT(''"'', r.l, ''"''), ''null''), '','', JSON_QUOTE(r.j), '','', r.c, '']'') ORDER BY {by}), '']'')
        INTO @mq_n, @mq_found FROM ({rows}) AS r';
    DECLARE v_rows longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT {ident} AS i, {key} AS k, {row} AS j, {place} AS l, ''null'' AS c, {sort_as}
        FROM {table} AS t {by_claim} WHERE {new} {sort} LIMIT {size} FOR UPDATE SKIP LOCKED';
    DECLARE v_rows_by_key longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT {ident} AS i, {key} AS k, {row} AS j, {place} AS l, ''null'' AS c, {sort_as}
        FROM {table} AS t {by_key} WHERE {new} AND {keys} IN ({literals}) {sort} LIMIT {size} FOR UPDATE SKIP LOCKED';
    DECLARE v_keys longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT COUNT(*), CONCAT(''['', GROUP_CONCAT(CONCAT(''[0,"'', r.i, ''"]'') ORDER BY {sort_by}), '']'') INTO @mq_n, @mq_found
        FROM (SELECT {ident} AS i, {sort_as} FROM {table} AS t {by_claim} WHERE {new} {sort} LIMIT {offset}, {size}) AS r';
    DECLARE v_highest longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT {place} INTO @mq_found FROM {table} AS t {by_claim} ORDER BY {order} DESC LIMIT 1';
    -- The last order value that the claim needs: later rows are not sorted.
    DECLARE v_last longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT {place} INTO @mq_found
        FROM {table} AS t {by_claim} WHERE {order} <= {settled} {later} ORDER BY {order} LIMIT {size}, 1';
    DECLARE v_placed longtext CHARACTER SET utf8mb4 DEFAULT
        'SELECT x.* FROM (
            SELECT y.*, ROW_NUMBER() OVER (PARTITION BY y.o, y.h ORDER BY y.h) AS c FROM (
                SELECT {ident} AS i, {key} AS k, {row} AS j, {place} AS l, {order} AS o, UNHEX(SHA2({ident}, 256)) AS h
                FROM {table} AS t {by_claim} WHERE {order} <= {high} {not_before}
            ) AS y
        ) AS x WHERE {after} ORDER BY x.o, x.h, x.c LIMIT {size}';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        IF v_zone IS NOT NULL THEN
            SET time_zone = v_zone;
        END IF;
        RESIGNAL;
    END;
    SELECT s.shape, s.columns_, s.sort_by, s.active, JSON_ARRAY(JSON_ARRAY('', s.place_class)), t.from_, t.from_hash, t.copies
    INTO v_letter, v_columns, v_sort_by, v_active, v_place_columns, v_from, v_from_hash, v_copies
    FROM JSON_TABLE(p_shape, '$' COLUMNS (shape varchar(1) CHARACTER SET utf8mb4 PATH '$.shape',
        columns_ longtext CHARACTER SET utf8mb4 PATH '$.columns',
        sort_by longtext CHARACTER SET utf8mb4 PATH '$.sort_by', active longtext CHARACTER SET utf8mb4 PATH '$.active',
        place_class varchar(1) CHARACTER SET utf8mb4 PATH '$.place_class')) AS s
    JOIN JSON_TABLE(p_table, '$' COLUMNS (from_ longtext CHARACTER SET utf8mb4 PATH '$.from',
        from_hash longtext CHARACTER SET utf8mb4 PATH '$.from_hash', copies bigint PATH '$.copies')) AS t;
    IF v_from IS NOT NULL THEN
        CALL imq_key_literals(v_place_columns, JSON_ARRAY(JSON_ARRAY(0, v_from)), v_from);
    END IF;
    -- Only literals and texts of this file are filled in here: imq_run_template fills in the names last.
    SET v_new = CONCAT(IF(p_active, '{is_active}', '{is_ready}'), IF(p_place, CONCAT(' AND {order} >= ', v_from), '')),
        v_rows = REPLACE(v_rows, '{new}', v_new), v_rows_by_key = REPLACE(v_rows_by_key, '{new}', v_new),
        v_keys = REPLACE(v_keys, '{new}', v_new), p_rows = NULL, p_count = 0;

    IF v_letter IN ('a', 'e') AND p_taken = 0 THEN
        CALL imq_list_rows(p_shape, REPLACE(REPLACE(v_list, '{by}', v_sort_by), '{rows}', v_rows), p_size, v_free);
        CALL imq_add_claims(p_batch_key, p_active, v_free, NULL, p_size, p_rows, p_count);

    ELSEIF v_letter IN ('a', 'e') THEN
        -- Some of these rows have entries, which only mq_owner can see. Read keys without locks, more in each round, and
        -- keep those without entries.
        SET v_chunk = p_size + 50;
        WHILE v_chunk > 0 AND p_count < p_size DO
            CALL imq_run_template(p_shape, REPLACE(REPLACE(v_keys, '{offset}', v_offset), '{size}', v_chunk), v_nothing);
            SET v_offset = v_offset + v_chunk, v_chunk = IF(@mq_n < v_chunk, 0, v_chunk * 4);
            CALL imq_free_rows(p_batch_key, p_active, COALESCE(@mq_found, '[]'), p_size - p_count, v_free);
            IF v_free IS NOT NULL THEN
                CALL imq_key_literals(v_columns, v_free, v_literals);
                CALL imq_list_rows(p_shape, REPLACE(REPLACE(v_list, '{by}', v_sort_by), '{rows}',
                    REPLACE(v_rows_by_key, '{literals}', v_literals)), p_size - p_count, v_free);
                CALL imq_add_claims(p_batch_key, p_active, v_free, NULL, p_size - p_count, v_added, v_added_count);
                SET p_rows = NULLIF(CONCAT_WS(',', p_rows, v_added), ''), p_count = p_count + v_added_count;
            END IF;
        END WHILE;

    ELSEIF v_letter IN ('c', 'f') THEN
        -- Of p_size + p_taken rows, at least p_size are free, if the table has so many. Without an active value nothing is
        -- written, and locks would only block others that finish the counted rows. Finishing a row deletes its entry. If the
        -- row is then no longer ready, entries are counted before rows. If a failed row becomes ready again, rows are
        -- counted before entries. An old count only makes the claim smaller.
        IF v_active = '' THEN
            CALL imq_held_copies(p_batch_key, v_held);
            SET v_rows = REPLACE(v_rows, 'FOR UPDATE SKIP LOCKED', '');
        END IF;
        CALL imq_list_rows(p_shape, REPLACE(REPLACE(v_list, '{by}', v_sort_by), '{rows}', v_rows), p_size + p_taken, v_free);
        CALL imq_add_claims(p_batch_key, p_active, v_free, v_held, p_size, p_rows, p_count);

    ELSE
        -- In UTC: in many time zones one hour of the year occurs twice.
        SET v_zone = @@SESSION.time_zone;
        SET time_zone = '+00:00';
        CALL imq_settled_place(p_batch_key, NULL, v_settled, v_wanted);
        IF v_wanted THEN
            SET @mq_found = NULL;
            CALL imq_run_template(p_shape, v_highest, v_nothing);
            IF @mq_found IS NOT NULL THEN
                CALL imq_settled_place(p_batch_key, @mq_found, v_settled, v_wanted);
            END IF;
        END IF;
        IF v_settled IS NOT NULL THEN
            CALL imq_key_literals(v_place_columns, JSON_ARRAY(JSON_ARRAY(0, v_settled)), v_settled);
            SET @mq_found = NULL, v_high = v_settled;
            CALL imq_run_template(p_shape, REPLACE(REPLACE(REPLACE(v_last, '{settled}', v_settled), '{later}',
                COALESCE(CONCAT('AND {order} > ', v_from), '')), '{size}', p_size - 1), v_nothing);
            IF @mq_found IS NOT NULL THEN
                CALL imq_key_literals(v_place_columns, JSON_ARRAY(JSON_ARRAY(0, @mq_found)), v_high);
            END IF;
            SET v_placed = REPLACE(REPLACE(REPLACE(v_placed, '{high}', v_high), '{not_before}',
                COALESCE(CONCAT('AND {order} >= ', v_from), '')), '{after}', COALESCE(CONCAT('x.o > ', v_from, ' OR x.h > x''',
                v_from_hash, ''' OR x.h = x''', v_from_hash, ''' AND x.c > ', v_copies), 'TRUE'));
            CALL imq_list_rows(p_shape, REPLACE(REPLACE(v_list, '{by}', 'r.o, r.h, r.c'), '{rows}', v_placed), p_size, v_free);
            CALL imq_add_claims(p_batch_key, 0, v_free, NULL, p_size, p_rows, p_count);
        END IF;
        SET time_zone = v_zone, v_zone = NULL;
    END IF;
    SET @mq_found = NULL, @mq_n = NULL;
END

-- claim_rows: claim up to p_size rows of an adopted table under one new batch key.
-- Arguments:   p_name, p_size (1 to 10,000; NULL: 1), p_reader (NULL: the application name), p_lease_seconds (NULL: 60)
-- Returns:     id, key, row, attempt, batch_key, lease_until; first what comes again, then new rows in their order
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's, which must be READ COMMITTED; claims of one table wait for each other until it ends
-- Example:     CALL mq_claim_rows('orders', 100, 'worker-1', 60);

DROP PROCEDURE IF EXISTS mq_claim_rows;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_claim_rows(
    IN p_name longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_reader longtext CHARACTER SET utf8mb4,
    IN p_lease_seconds bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6);
    DECLARE v_until datetime(6);
    DECLARE v_key varchar(36) CHARACTER SET utf8mb4 DEFAULT UUID();
    DECLARE v_reader varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_shape, v_items, v_ids, v_written, v_refused, v_ready, v_active, v_letter longtext CHARACTER SET utf8mb4;
    DECLARE v_size, v_count, v_dead, v_gone, v_last bigint;
    DECLARE v_from_place tinyint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;

    CALL mq_require_name('name', p_name, 0);
    CALL mq_require_range('size', p_size, 1, 10000);
    CALL mq_require_name('reader', p_reader, 1);
    CALL mq_require_range('lease_seconds', p_lease_seconds, 0, 315360000);
    CALL mq_begin_call(1, v_own);
    CALL mq_lock_polled(p_name);
    CALL mq_polled_shape(p_name, v_shape);
    UPDATE mq_polled SET shape = v_shape WHERE name = p_name AND NOT shape <=> v_shape;
    CALL mq_reader_name(p_reader, v_reader);
    SET v_now = UTC_TIMESTAMP(6), v_size = COALESCE(p_size, 1);
    SET v_until = v_now + INTERVAL COALESCE(p_lease_seconds, 60) SECOND;
    SELECT shape, ready, active INTO v_letter, v_ready, v_active
    FROM JSON_TABLE(v_shape, '$' COLUMNS (
        shape varchar(1) CHARACTER SET utf8mb4 PATH '$.shape', ready longtext CHARACTER SET utf8mb4 PATH '$.ready',
        active longtext CHARACTER SET utf8mb4 PATH '$.active'
    )) AS s;

    -- What a lost consumer held comes again.
    SELECT CONCAT('[', GROUP_CONCAT(JSON_QUOTE(b.batch_key)), ']') INTO v_items
    FROM (SELECT batch_key FROM mq_polled_batch WHERE name = p_name AND lease_until <= v_now FOR UPDATE SKIP LOCKED) AS b;
    IF v_items IS NOT NULL THEN
        SELECT GROUP_CONCAT(e.id) INTO v_ids
        FROM JSON_TABLE(v_items, '$[*]' COLUMNS (batch_key varchar(36) CHARACTER SET utf8mb4 PATH '$')) AS j
        STRAIGHT_JOIN mq_polled_row AS e
            ON e.batch_key = CONVERT(j.batch_key USING utf8mb4) COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;
        DELETE b FROM JSON_TABLE(v_items, '$[*]' COLUMNS (batch_key varchar(36) CHARACTER SET utf8mb4 PATH '$')) AS j
        STRAIGHT_JOIN mq_polled_batch AS b FORCE INDEX (PRIMARY)
            ON b.batch_key = CONVERT(j.batch_key USING utf8mb4) COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */;
        IF v_ids IS NOT NULL THEN
            CALL mq_run(CONCAT('UPDATE mq_polled_row AS e FORCE INDEX (PRIMARY) '
                'SET e.state = ''N'', e.batch_key = NULL, e.run_at = ''', v_now,
                ''', e.error = ''lease expired'' WHERE e.id IN (', v_ids, ')'), v_count);
        END IF;
    END IF;

    CALL mq_take_due(p_name, v_shape, v_size, v_key, v_reader);
    SELECT v_size - COUNT(*) INTO v_size FROM mq_polled_row WHERE batch_key = v_key;
    IF v_size > 0 THEN
        SELECT v_letter = 'e' AND place IS NOT NULL AND looked_at > v_now - INTERVAL 1 SECOND INTO v_from_place
        FROM mq_polled WHERE name = p_name;
        CALL mq_pick_rows(p_name, v_shape, v_size, v_from_place, v_key, v_reader, v_count);
        IF v_from_place AND v_count < v_size THEN
            -- Something may stand before the place where the last claim ended.
            SET v_from_place = 0;
            CALL mq_pick_rows(p_name, v_shape, v_size - v_count, 0, v_key, v_reader, v_gone);
            SET v_count = v_count + v_gone;
        END IF;
        IF v_count > 0 AND v_letter IN ('b', 'd', 'e') THEN
            SELECT MAX(id) INTO v_last FROM mq_polled_row WHERE batch_key = v_key;
            UPDATE mq_polled AS p JOIN mq_polled_row AS e ON e.id = v_last
            SET p.place = e.place, p.place_hash = e.ident_hash, p.copies = e.copies, p.looked_at = IF(v_from_place, p.looked_at,
                v_now)
            WHERE p.name = p_name;
        ELSEIF v_count > 0 THEN
            -- In a cluster the lock on this row holds on one node only. A change of it lets one of two claims at one moment
            -- fail with a conflict, where both would get the same rows.
            UPDATE mq_polled SET looked_at = v_now WHERE name = p_name;
        END IF;
        IF v_count > 0 AND v_letter = 'a' THEN
            -- Dead once, and made ready again by hand.
            SELECT GROUP_CONCAT(o.id) INTO v_ids
            FROM mq_polled_row AS e
            STRAIGHT_JOIN mq_polled_row AS o ON o.name = e.name AND o.ident_hash = e.ident_hash AND o.state = 'E'
            WHERE e.batch_key = v_key;
            IF v_ids IS NOT NULL THEN
                CALL mq_run(CONCAT('DELETE o FROM mq_polled_row AS o FORCE INDEX (PRIMARY) WHERE o.id IN (', v_ids, ')'), v_gone);
            END IF;
        END IF;
    END IF;

    SELECT COUNT(*), CONCAT('[', GROUP_CONCAT(IF(active = 0, id, NULL) ORDER BY id), ']') INTO v_count, v_items
    FROM mq_polled_row WHERE batch_key = v_key;
    IF v_count > 0 THEN
        INSERT INTO mq_polled_batch (batch_key, lease_until, lease_seconds, name, reader)
        VALUES (v_key, v_until, COALESCE(p_lease_seconds, 60), p_name, v_reader);
        IF v_active <> '' AND v_items IS NOT NULL THEN
            CALL mq_write_rows(v_shape, v_items, v_ready, v_active, 'set', v_written, v_refused);
            UPDATE JSON_TABLE(COALESCE(v_written, '[]'), '$[*]' COLUMNS (id bigint PATH '$')) AS j
            STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
            SET e.active = 1;
            IF v_refused IS NOT NULL THEN
                -- What the table itself will not have claimed must not stop the others.
                SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(j.id, NULL, j.error)), ']') INTO v_refused
                FROM JSON_TABLE(v_refused, '$[*]' COLUMNS (
                    id bigint PATH '$[0]', error longtext CHARACTER SET utf8mb4 PATH '$[1]'
                )) AS j;
                CALL mq_fail_rows(p_name, v_shape, v_refused, v_count, v_dead, v_gone);
            END IF;
            -- As many copies as were counted may not have been left.
            DELETE e FROM JSON_TABLE(v_items, '$[*]' COLUMNS (id bigint PATH '$')) AS j
            STRAIGHT_JOIN mq_polled_row AS e FORCE INDEX (PRIMARY) ON e.id = j.id
            WHERE e.active = 0 AND e.state = 'A';
        END IF;
    END IF;
    SELECT e.id, e.key_json AS `key`, e.row_json AS `row`, e.attempts AS attempt, b.batch_key, b.lease_until
    FROM mq_polled_batch AS b
    STRAIGHT_JOIN mq_polled_row AS e ON e.batch_key = b.batch_key
    WHERE b.batch_key = v_key
    ORDER BY e.id;
    CALL mq_end_call(v_own);
END//

DELIMITER ;

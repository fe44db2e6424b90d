-- take_lanes: take messages of one priority of a fair queue from its lanes in turn; see pick_fair.
-- Arguments:   p_weight (the highest weight of a group)
-- Returns:     p_items: as from pick_fair
-- Transaction: joins the caller's; never waits for another claim

DROP PROCEDURE IF EXISTS imq_take_lanes;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_take_lanes(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_priority smallint,
    IN p_size int,
    IN p_weight int,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- Read at most this many lanes per call: others may have locked them all.
    DECLARE c_lanes int DEFAULT 2000;
    DECLARE c_rows int DEFAULT 1000;
    DECLARE c_single int DEFAULT 8;
    DECLARE v_reader varchar(5) CHARACTER SET utf8mb4 DEFAULT LPAD(p_priority + 32768, 5, '0');
    DECLARE v_left int DEFAULT p_size;
    DECLARE v_rows int DEFAULT LEAST(GREATEST(p_size, p_weight), 1000);
    DECLARE v_read_n, v_n, v_newest bigint DEFAULT 0;
    DECLARE v_lanes, v_count, v_last, v_want, i, v_seen, v_single int DEFAULT 0;
    DECLARE v_wrapped, v_done tinyint DEFAULT 0;
    DECLARE v_lane, v_passed varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_from, v_start, v_next, v_further varchar(201) CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_found, v_locked, v_all, v_round longtext CHARACTER SET utf8mb4;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    SELECT n, n, CONCAT(lane, CHAR(0)) INTO v_read_n, v_n, v_from
    FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND reader = v_reader ORDER BY n DESC LIMIT 1;
    SET v_start = v_from, p_items = NULL;
    circle: WHILE v_left > 0 AND v_seen < c_lanes DO
        CALL imq_read_lanes(p_type, p_priority, v_from, IF(v_wrapped, v_start, NULL), v_rows, p_weight, v_found, v_lanes, v_next);
        IF v_found IS NOT NULL THEN
            SELECT n, CONCAT(lane, CHAR(0)) INTO v_newest, v_further
            FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND reader = v_reader ORDER BY n DESC LIMIT 1;
            IF v_newest > v_n THEN
                -- Another claim has got further: what was read may be the second messages of lanes that it served.
                SET v_read_n = v_newest, v_n = v_newest, v_from = v_further, v_start = v_from, v_wrapped = 0;
                ITERATE circle;
            END IF;
            SET v_all = CONCAT_WS(',', v_all, v_found), v_seen = v_seen + v_lanes, v_count = 0;
            SELECT GROUP_CONCAT('[', k.id, ',', k.attempts + 1, ',', p_priority, ',"', k.run_at, '",', JSON_QUOTE(k.lane), ']' ORDER BY k.n),
                COUNT(*), MAX(k.n)
            INTO v_locked, v_count, v_last
            FROM (
                SELECT r.id, r.attempts, r.run_at, r.lane, j.n
                FROM JSON_TABLE(CONCAT('[', v_found, ']'), '$[*]' COLUMNS (
                    n FOR ORDINALITY, id bigint PATH '$[0]', run_at datetime(6) PATH '$[3]',
                    lane varchar(200) CHARACTER SET utf8mb4 PATH '$[4]'
                )) AS j
                STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                    ON r.type = p_type AND r.priority = p_priority AND r.lane = j.lane AND r.run_at = j.run_at AND r.id = j.id
                LIMIT v_left
                FOR UPDATE /*!80000 OF r */ SKIP LOCKED
            ) AS k;
            SET p_items = NULLIF(CONCAT_WS(',', p_items, v_locked), ''), v_left = v_left - v_count;
            -- The position: the last lane that was tried. n counts the lanes.
            SET v_last = IF(v_left = 0, v_last, JSON_LENGTH(CONCAT('[', v_found, ']')));
            SET v_passed = JSON_UNQUOTE(JSON_EXTRACT(CONCAT('[', v_found, ']'), CONCAT('$[', v_last - 1, '][4]'))),
                v_n = v_n + LEAST(v_last, v_lanes);
        END IF;
        IF v_next IS NULL AND v_wrapped THEN
            LEAVE circle;
        ELSEIF v_next IS NULL THEN
            SET v_wrapped = 1, v_next = '';
        END IF;
        -- Read fewer rows while the lanes are long, and more while they are short; one row shows nothing.
        SET v_from = v_next, v_single = IF(v_rows = 1, v_single + 1, 0),
            v_rows = LEAST(GREATEST(CASE WHEN v_single BETWEEN 1 AND c_single THEN 1 WHEN 2 * v_lanes > v_rows THEN 4 * v_rows ELSE v_lanes END,
                p_weight, 1), GREATEST(v_left, p_weight, 1), c_rows);
    END WHILE;
    SET p_items = CONCAT('[', p_items, ']');
    IF p_items IS NOT NULL THEN
        CALL imq_delete_ready(p_type, p_items);
    END IF;

    -- Further rounds, each as long as all lanes can give.
    IF v_left > 0 THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', JSON_QUOTE(l.lane), ',', l.weight, ']' ORDER BY l.n), ']') INTO v_all
        FROM (
            SELECT MIN(j.n) AS n, COUNT(*) AS weight, j.lane
            FROM JSON_TABLE(CONCAT('[', v_all, ']'), '$[*]' COLUMNS (
                n FOR ORDINALITY,
                lane varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[4]'
            )) AS j
            GROUP BY j.lane
        ) AS l;
    END IF;
    rounds: WHILE v_left > 0 AND v_all IS NOT NULL DO
        SELECT SUM(j.weight) INTO v_seen FROM JSON_TABLE(v_all, '$[*]' COLUMNS (weight int PATH '$[1]')) AS j;
        SET i = 0, v_round = NULL, v_found = NULL, v_lanes = JSON_LENGTH(v_all), v_want = CEIL(v_left / v_seen);
        WHILE i < v_lanes AND v_left > 0 DO
            SET v_lane = JSON_UNQUOTE(JSON_EXTRACT(v_all, CONCAT('$[', i, '][0]'))), v_count = 0,
                v_last = LEAST(v_left, v_want * JSON_EXTRACT(v_all, CONCAT('$[', i, '][1]'))), i = i + 1;
            SELECT GROUP_CONCAT('[', k.id, ',', k.attempts + 1, ',', p_priority, ',"', k.run_at, '",', JSON_QUOTE(v_lane), ']'
                ORDER BY k.run_at, k.id), COUNT(*)
            INTO v_locked, v_count
            FROM (
                SELECT id, attempts, run_at
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority = p_priority AND lane = v_lane
                ORDER BY run_at, id
                LIMIT v_last
                FOR UPDATE SKIP LOCKED
            ) AS k;
            SET v_left = v_left - v_count, v_found = NULLIF(CONCAT_WS(',', v_found, v_locked), '');
            IF v_count = v_last THEN
                SET v_round = CONCAT_WS(',', v_round, JSON_EXTRACT(v_all, CONCAT('$[', i - 1, ']')));
            END IF;
        END WHILE;
        IF v_found IS NOT NULL THEN
            SET v_found = CONCAT('[', v_found, ']');
            CALL imq_delete_ready(p_type, v_found);
            SET p_items = IF(p_items IS NULL, v_found, CONCAT(LEFT(p_items, CHAR_LENGTH(p_items) - 1), ',', SUBSTRING(v_found, 2)));
        END IF;
        SET v_all = CONCAT('[', NULLIF(v_round, ''), ']');
    END WHILE;

    IF p_items IS NOT NULL AND v_passed IS NOT NULL THEN
        -- One claim in a hundred deletes all older positions: those of long transactions may be further back.
        CALL imq_save_position(p_type, v_reader, v_n, 0, v_passed, IF(RAND() < 0.01, 0, v_read_n - 20 * p_size), v_read_n, 0, 0);
    END IF;
END//

DELIMITER ;

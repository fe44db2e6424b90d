-- take_lanes: take messages of one priority of a fair queue from its lanes in turn; see pick_fair.
-- Arguments:   p_weight (the highest weight of a group)
-- Returns:     p_items: as from pick_fair
--
-- The position in mq_ring: lane, the last lane that was tried; n, the number of lanes that were tried so far; after_id, how
-- many messages this lane has got in its turn.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_take_lanes(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_priority smallint, IN p_size int, IN p_weight int,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- The highest weight, and the most rows that one statement reads here.
    DECLARE c_most int DEFAULT 1000;
    -- Try at most this many lanes in a call: others may have locked all of them.
    DECLARE c_lanes int DEFAULT 2000;
    DECLARE c_single int DEFAULT 8;
    DECLARE v_consumer varchar(5) CHARACTER SET utf8mb4 DEFAULT LPAD(p_priority + 32768, 5, '0');
    DECLARE v_left int DEFAULT p_size;
    DECLARE v_rows int DEFAULT LEAST(GREATEST(p_size, p_weight), c_most);
    DECLARE v_read_n, v_n, v_newest bigint DEFAULT 0;
    DECLARE v_taken, v_read_taken, v_newest_taken int DEFAULT c_most;
    DECLARE v_lanes, v_count, v_last, v_tried, v_single, v_resume int DEFAULT 0;
    DECLARE v_wrapped tinyint DEFAULT 0;
    DECLARE v_lane, v_further varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_from, v_start, v_next varchar(201) CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_found, v_locked, v_all, v_kept longtext CHARACTER SET utf8mb4;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    SET p_items = NULL;
    SELECT n, after_id, lane INTO v_read_n, v_read_taken, v_lane
    FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND consumer = v_consumer ORDER BY n DESC, after_id DESC LIMIT 1;
    SET v_n = v_read_n, v_taken = v_read_taken, v_start = COALESCE(CONCAT(v_lane, CHAR(0)), ''), v_from = v_start;
    IF p_weight > v_taken THEN
        SELECT COALESCE(MAX(weight), 1) - v_taken INTO v_resume FROM mq_queue_group WHERE type = p_type AND group_key = v_lane;
    END IF;
    circle: WHILE v_left > 0 AND v_tried < c_lanes DO
        IF v_resume > 0 THEN
            -- The turn of this lane is not over.
            CALL imq_read_lanes(p_type, p_priority, v_lane, v_start, v_resume, p_weight, v_found, v_lanes, v_next);
            SET v_next = v_start;
        ELSE
            CALL imq_read_lanes(p_type, p_priority, v_from, IF(v_wrapped, v_start, NULL), v_rows, p_weight, v_found, v_lanes,
                v_next);
        END IF;
        IF v_found IS NOT NULL THEN
            SELECT n, after_id, lane INTO v_newest, v_newest_taken, v_further
            FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND consumer = v_consumer ORDER BY n DESC, after_id DESC LIMIT 1;
            IF v_newest > v_n OR v_newest = v_n AND v_newest_taken > v_taken THEN
                -- Another claim has got further: what was read may be the second messages of lanes that it served. What this
                -- claim has taken must not be found again.
                IF p_items IS NOT NULL THEN
                    SET v_kept = CONCAT_WS(',', v_kept, p_items), p_items = CONCAT('[', p_items, ']');
                    CALL imq_delete_ready(p_type, p_items);
                    SET p_items = NULL;
                END IF;
                SET v_read_n = v_newest, v_n = v_newest, v_read_taken = v_newest_taken, v_taken = v_newest_taken,
                    v_lane = v_further, v_start = CONCAT(v_further, CHAR(0)), v_from = v_start, v_wrapped = 0, v_resume = 0;
                ITERATE circle;
            END IF;
            SET v_all = CONCAT_WS(',', v_all, v_found), v_found = CONCAT('[', v_found, ']'), v_tried = v_tried + v_lanes;
            SELECT GROUP_CONCAT('[', k.id, ',', k.attempts + 1, ',', p_priority, ',"', k.run_at, '",', JSON_QUOTE(k.lane), ']' ORDER BY k.n),
                COUNT(*), COALESCE(MAX(k.n), 0)
            INTO v_locked, v_count, v_last
            FROM (
                SELECT r.id, r.attempts, r.run_at, r.lane, j.n
                FROM JSON_TABLE(v_found, '$[*]' COLUMNS (
                    n FOR ORDINALITY, id bigint PATH '$[0]', run_at datetime(6) PATH '$[3]',
                    lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[4]'
                )) AS j
                STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                    ON r.type = p_type AND r.priority = p_priority AND r.lane = j.lane AND r.run_at = j.run_at AND r.id = j.id
                LIMIT v_left
                FOR UPDATE /*!80000 OF r */ SKIP LOCKED
            ) AS k;
            SET p_items = NULLIF(CONCAT_WS(',', p_items, v_locked), ''), v_left = v_left - v_count,
                v_last = IF(v_left = 0, v_last, JSON_LENGTH(v_found)),
                v_lane = JSON_UNQUOTE(JSON_EXTRACT(v_found, CONCAT('$[', v_last - 1, '][4]')));
            IF v_resume > 0 THEN
                -- The circle ends with this lane, and must not find them again.
                SET v_taken = v_taken + v_count, v_kept = NULLIF(CONCAT_WS(',', v_kept, p_items), ''), p_items = CONCAT('[', p_items, ']');
                IF p_items IS NOT NULL THEN
                    CALL imq_delete_ready(p_type, p_items);
                    SET p_items = NULL;
                END IF;
            ELSEIF p_weight = 1 THEN
                SET v_n = v_n + v_last, v_taken = 1;
            ELSE
                SELECT COUNT(DISTINCT j.lane), IF(v_left = 0, SUM(CAST(j.lane AS binary) = CAST(v_lane AS binary)), c_most)
                INTO v_last, v_taken
                FROM JSON_TABLE(v_found, '$[*]' COLUMNS (n FOR ORDINALITY, lane varchar(200) CHARACTER SET utf8mb4
                    COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[4]')) AS j
                WHERE j.n <= v_last;
                SET v_n = v_n + v_last;
            END IF;
        END IF;
        SET v_resume = 0;
        IF v_next IS NULL AND v_wrapped THEN
            LEAVE circle;
        ELSEIF v_next IS NULL THEN
            SET v_wrapped = 1, v_next = '';
        END IF;
        -- Read fewer rows while the lanes are long, and more while they are short. One row does not show which.
        SET v_from = v_next, v_single = IF(v_rows = 1, v_single + 1, 0),
            v_rows = CASE WHEN v_single BETWEEN 1 AND c_single THEN 1 WHEN 2 * v_lanes > v_rows THEN 4 * v_rows ELSE v_lanes END,
            v_rows = LEAST(GREATEST(LEAST(v_rows, v_left), p_weight, 1), c_most);
    END WHILE;
    SET p_items = CONCAT('[', p_items, ']');
    IF p_items IS NOT NULL THEN
        CALL imq_delete_ready(p_type, p_items);
    END IF;
    IF v_kept IS NOT NULL THEN
        SET p_items = CONCAT('[', v_kept, IF(p_items IS NULL, ']', CONCAT(',', SUBSTRING(p_items, 2))));
    END IF;
    IF v_left > 0 AND v_all IS NOT NULL THEN
        CALL imq_take_rounds(p_type, p_priority, v_left, CONCAT('[', v_all, ']'), v_found, v_last, v_taken);
        IF v_found IS NOT NULL THEN
            SET v_lane = JSON_UNQUOTE(JSON_EXTRACT(v_found, CONCAT('$[', JSON_LENGTH(v_found) - 1, '][4]'))), v_n = v_n + v_last,
                p_items = IF(p_items IS NULL, v_found, CONCAT(LEFT(p_items, CHAR_LENGTH(p_items) - 1), ',', SUBSTRING(v_found, 2)));
        END IF;
    END IF;
    IF p_items IS NOT NULL THEN
        -- One claim in a hundred deletes all older positions: those of long transactions may be further back.
        CALL imq_save_position(p_type, v_consumer, v_n, v_taken, v_lane, IF(RAND() < 0.01, 0, v_read_n - 20 * p_size), v_read_n,
            0, IF(v_n > v_read_n, c_most, v_read_taken));
    END IF;
END

-- take_rounds: take further messages of lanes that have had their turn, until the claim is full; see pick_fair.
-- Arguments:   p_lanes (a JSON array of rows that read_lanes has found)
-- Returns:     p_items: as from pick_fair; p_turns: the number of turns that were given; p_taken: how many messages the
--              last lane has got in its turn
--
-- A pass takes as many rounds as all lanes together may need, so there are few passes. Lanes that gave less have no more.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_take_rounds(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_priority smallint, IN p_size int,
    IN p_lanes longtext CHARACTER SET utf8mb4, OUT p_items longtext CHARACTER SET utf8mb4, OUT p_turns int,
    OUT p_taken int
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_most int DEFAULT 1000;
    DECLARE i, v_all, v_rounds, v_wanted, v_weight, v_count int;
    DECLARE v_left int DEFAULT p_size;
    DECLARE v_lane varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_lanes, v_full, v_rows, v_found longtext CHARACTER SET utf8mb4;
    SET p_items = NULL, p_turns = 0, p_taken = c_most;
    SELECT CONCAT('[', GROUP_CONCAT('[', JSON_QUOTE(l.lane), ',', COALESCE(g.weight, 1), ']' ORDER BY l.n), ']') INTO v_lanes
    FROM (
        SELECT MAX(j.n) AS n, j.lane
        FROM JSON_TABLE(p_lanes, '$[*]' COLUMNS (n FOR ORDINALITY, lane varchar(200) CHARACTER SET utf8mb4
            COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[4]')) AS j
        GROUP BY j.lane
    ) AS l
    LEFT JOIN mq_queue_group AS g FORCE INDEX (PRIMARY) ON g.type = p_type AND g.group_key = l.lane;
    passes: WHILE v_left > 0 AND v_lanes IS NOT NULL DO
        SELECT SUM(j.weight) INTO v_all FROM JSON_TABLE(v_lanes, '$[*]' COLUMNS (weight int PATH '$[1]')) AS j;
        SET v_rounds = GREATEST(v_left DIV v_all, 1), i = 0, v_rows = NULL, v_full = NULL;
        WHILE i < JSON_LENGTH(v_lanes) AND v_left > 0 DO
            SET v_lane = JSON_UNQUOTE(JSON_EXTRACT(v_lanes, CONCAT('$[', i, '][0]'))),
                v_weight = JSON_EXTRACT(v_lanes, CONCAT('$[', i, '][1]')), v_wanted = LEAST(v_rounds * v_weight, v_left);
            SELECT GROUP_CONCAT('[', k.id, ',', k.attempts + 1, ',', p_priority, ',"', k.run_at, '",', JSON_QUOTE(v_lane), ',', i, ',',
                v_weight, ']' ORDER BY k.run_at, k.id), COUNT(*)
            INTO v_found, v_count
            FROM (
                SELECT id, attempts, run_at
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority = p_priority AND lane = v_lane
                ORDER BY run_at, id
                LIMIT v_wanted
                FOR UPDATE SKIP LOCKED
            ) AS k;
            SET v_left = v_left - v_count, v_rows = NULLIF(CONCAT_WS(',', v_rows, v_found), ''),
                v_full = NULLIF(CONCAT_WS(',', v_full, IF(v_count = v_wanted, JSON_EXTRACT(v_lanes, CONCAT('$[', i, ']')), NULL)), ''),
                i = i + 1;
        END WHILE;
        SET v_lanes = CONCAT('[', v_full, ']');
        IF v_rows IS NOT NULL THEN
            -- In the order of the turns.
            SELECT CONCAT('[', GROUP_CONCAT('[', t.id, ',', t.attempt, ',', p_priority, ',"', t.run_at, '",', JSON_QUOTE(t.lane), ']'
                ORDER BY t.turn, t.i, t.n), ']'), COUNT(DISTINCT t.turn, t.i)
            INTO v_found, v_count
            FROM (
                SELECT j.*, (ROW_NUMBER() OVER (PARTITION BY j.i ORDER BY j.n) - 1) DIV j.weight AS turn
                FROM JSON_TABLE(CONCAT('[', v_rows, ']'), '$[*]' COLUMNS (
                    n FOR ORDINALITY, id bigint PATH '$[0]', attempt int PATH '$[1]', run_at datetime(6) PATH '$[3]',
                    lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[4]', i int PATH '$[5]', weight int PATH '$[6]'
                )) AS j
            ) AS t;
            CALL imq_delete_ready(p_type, v_found);
            SET p_items = IF(p_items IS NULL, v_found, CONCAT(LEFT(p_items, CHAR_LENGTH(p_items) - 1), ',', SUBSTRING(v_found, 2))),
                p_turns = p_turns + v_count,
                p_taken = IF(v_left = 0 AND v_wanted < v_rounds * v_weight, v_wanted, c_most);
        END IF;
    END WHILE;
END

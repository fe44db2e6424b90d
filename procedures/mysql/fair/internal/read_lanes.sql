-- read_lanes: read the first messages of the next lanes of a fair queue.
-- Arguments:   p_priority, p_from and p_until (lanes from p_from on, before p_until; NULL: to the last one), p_rows (the
--              number of rows to read), p_weight (the highest weight of a group)
-- Returns:     p_found: '[id,number of the new attempt,priority,run_at,lane],...' in the order of the lanes, up to the
--              weight of each; NULL for none; p_lanes: their number; p_next: the next call starts here; NULL: no lane is left
--
-- A loose index scan. A query cannot do it: in a subquery that depends on the lane before, both products read all rows
-- between the two. So this call reads a part of the index, and the next part starts after the last lane that it found.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_read_lanes(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_priority smallint, IN p_from varchar(201) CHARACTER SET utf8mb4,
    IN p_until varchar(201) CHARACTER SET utf8mb4, IN p_rows int, IN p_weight int,
    OUT p_found longtext CHARACTER SET utf8mb4, OUT p_lanes int, OUT p_next varchar(201) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    -- No lane sorts after it.
    DECLARE v_until varchar(201) CHARACTER SET utf8mb4 DEFAULT COALESCE(p_until, REPEAT(CONVERT(x'F48FBFBF' USING utf8mb4), 201));
    DECLARE v_rows int DEFAULT 0;
    DECLARE v_last varchar(200) CHARACTER SET utf8mb4;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    SET p_found = NULL, p_lanes = 0;
    IF p_rows = 1 THEN
        SELECT CONCAT('[', id, ',', attempts + 1, ',', priority, ',"', run_at, '",', JSON_QUOTE(lane), ']'), 1, 1, lane
        INTO p_found, p_lanes, v_rows, v_last
        FROM mq_ready FORCE INDEX (PRIMARY)
        WHERE type = p_type AND priority = p_priority AND lane >= p_from AND lane < v_until AND attempts >= 0
        ORDER BY lane, run_at, id
        LIMIT 1;
    ELSE
        SELECT GROUP_CONCAT(IF(w.nth <= w.weight, CONCAT('[', w.id, ',', w.attempts + 1, ',', p_priority, ',"', w.run_at, '",',
            JSON_QUOTE(w.lane), ']'), NULL) ORDER BY w.lane, w.run_at, w.id), COALESCE(SUM(w.nth = 1), 0), COUNT(*), MAX(w.lane)
        INTO p_found, p_lanes, v_rows, v_last
        FROM (
            SELECT r.*, IF(p_weight > 1, COALESCE(g.weight, 1), 1) AS weight,
                ROW_NUMBER() OVER (PARTITION BY r.lane ORDER BY r.run_at, r.id) AS nth
            FROM (
                SELECT lane, run_at, id, attempts
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority = p_priority AND lane >= p_from AND lane < v_until
                ORDER BY lane, run_at, id
                LIMIT p_rows
            ) AS r
            LEFT JOIN mq_queue_group AS g FORCE INDEX (PRIMARY) ON p_weight > 1 AND g.type = p_type AND g.group_key = r.lane
        ) AS w;
    END IF;
    -- The smallest text after the last lane.
    SET p_next = IF(v_rows < p_rows, NULL, CONCAT(v_last, CHAR(0)));
    IF p_weight > 1 AND p_next IS NOT NULL AND p_lanes > 1 THEN
        -- The last lane may be cut off: the next call reads it again.
        SELECT GROUP_CONCAT(JSON_EXTRACT(CONCAT('[', p_found, ']'), CONCAT('$[', j.n - 1, ']')) ORDER BY j.n) INTO p_found
        FROM JSON_TABLE(CONCAT('[', p_found, ']'), '$[*]' COLUMNS (
            n FOR ORDINALITY, lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[4]'
        )) AS j
        WHERE CAST(j.lane AS binary) <> CAST(v_last AS binary);
        SET p_lanes = p_lanes - 1, p_next = v_last;
    END IF;
END

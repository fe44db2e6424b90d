-- move_ready: move rows of mq_ready to their positions after set_queue has changed ring or fair.
-- Arguments:   p_all (1: look at every row of the queue; 0: only where rows can be that were locked at the time of the
--              change, or whose sender had read the policy before it, and at most 1,000 of them)
-- Transaction: joins the caller's; skips rows that others have locked
--
-- A claim calls this with 0 once per second. A row that is not moved yet is not lost: in a fair queue it is in the lane
-- without a name; a row of a former ring is before all others.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_move_ready(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_all tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_rows int DEFAULT IF(p_all, 10000, 1000);
    DECLARE c_priorities int DEFAULT 100;
    DECLARE v_grouped, v_ring, v_fair, v_some, v_moved tinyint DEFAULT 0;
    DECLARE v_read, v_priorities int DEFAULT 0;
    DECLARE v_at_priority, v_priority int DEFAULT -32769;
    DECLARE v_at_lane varchar(200) CHARACTER SET utf8mb4 DEFAULT '';
    DECLARE v_at_run_at datetime(6) DEFAULT '1000-01-01';
    DECLARE v_at_id bigint DEFAULT 0;
    DECLARE v_last, v_rows longtext CHARACTER SET utf8mb4;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_priority = NULL;
    SELECT grouped, ring, fair INTO v_grouped, v_ring, v_fair FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    IF p_all THEN
        SET v_some = 1;
    ELSEIF v_ring THEN
        -- After the last row of the ring.
        SET v_at_priority = -32768, v_at_id = 9223372036854775807;
        SELECT EXISTS (
            SELECT * FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND (lane > '' OR lane = '' AND run_at > '1000-01-01'))
                AND attempts >= 0
        ) INTO v_some;
    ELSEIF NOT v_fair THEN
        -- In a lane of any priority.
        WHILE NOT v_some AND v_priority IS NOT NULL AND v_priorities < c_priorities DO
            SELECT priority INTO v_priority FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND priority > v_priority AND attempts >= 0
            ORDER BY priority, lane, run_at, id
            LIMIT 1;
            SELECT EXISTS (
                SELECT * FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND priority = v_priority AND lane > '' AND attempts >= 0
            ) INTO v_some;
            SET v_priorities = v_priorities + 1;
        END WHILE;
        SET v_at_priority = COALESCE(v_priority, 0), v_at_run_at = '9999-12-31', v_at_id = 9223372036854775807;
    END IF;
    WHILE v_some DO
        SELECT CONCAT('[', GROUP_CONCAT(IF(k.priority <> k.in_priority OR k.lane <> k.in_lane OR k.run_at <> k.in_run_at, CONCAT('[', k.id, ',',
            k.attempts, ',', k.priority, ',"', k.run_at, '",', JSON_QUOTE(k.lane), ',', k.in_priority, ',"', k.in_run_at, '",',
            JSON_QUOTE(k.in_lane), ']'), NULL)), ']'), COUNT(*),
            SUBSTRING_INDEX(GROUP_CONCAT(JSON_ARRAY(k.priority, k.lane, CAST(k.run_at AS char), k.id)
                ORDER BY k.priority DESC, k.lane DESC, k.run_at DESC, k.id DESC SEPARATOR '\n'), '\n', 1)
        INTO v_rows, v_read, v_last
        FROM (
            SELECT r.id, r.attempts, r.priority, r.lane, r.run_at, IF(v_ring, -32768, m.priority) AS in_priority,
                IF(v_fair, COALESCE(m.group_key, ''), '') AS in_lane,
                -- The tickets of a queue with groups may be anywhere in their lane.
                CASE WHEN v_grouped THEN r.run_at WHEN v_ring OR v_fair THEN CAST('1000-01-01' AS datetime(6)) ELSE m.run_at END AS in_run_at
            FROM (
                SELECT id, attempts, priority, lane, run_at
                FROM mq_ready FORCE INDEX (PRIMARY)
                WHERE type = p_type AND (priority > v_at_priority OR priority = v_at_priority AND (lane > v_at_lane
                    OR lane = v_at_lane AND (run_at > v_at_run_at OR run_at = v_at_run_at AND id > v_at_id)))
                ORDER BY priority, lane, run_at, id
                LIMIT c_rows
                FOR UPDATE SKIP LOCKED
            ) AS r
            LEFT JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id
        ) AS k;
        IF v_rows IS NOT NULL THEN
            CALL imq_delete_ready(p_type, v_rows);
            INSERT IGNORE INTO mq_ready (type, priority, lane, run_at, id, attempts)
            SELECT p_type, j.priority, j.lane, j.run_at, j.id, j.attempts
            FROM JSON_TABLE(v_rows, '$[*]' COLUMNS (
                id bigint PATH '$[0]', attempts smallint PATH '$[1]', priority smallint PATH '$[5]', run_at datetime(6) PATH '$[6]',
                lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[7]'
            )) AS j;
            SET v_moved = 1;
        END IF;
        SET v_some = p_all AND v_read > 0;
        IF v_some THEN
            SET v_at_priority = JSON_EXTRACT(v_last, '$[0]'), v_at_lane = JSON_UNQUOTE(JSON_EXTRACT(v_last, '$[1]')),
                v_at_run_at = JSON_UNQUOTE(JSON_EXTRACT(v_last, '$[2]')), v_at_id = JSON_EXTRACT(v_last, '$[3]');
        END IF;
    END WHILE;
    IF v_moved THEN
        CALL imq_lower_mark(p_type);
    END IF;
END

-- delete_ready: delete rows of the ready table that the caller has locked.
-- Arguments:   p_type, p_rows (a JSON array of [id, attempt, priority, run_at, lane]; in all of them or
--              in none a lane: then '')

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_delete_ready(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_rows longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- No join for a single row: see delete_messages.
    DECLARE v_one bigint DEFAULT IF(JSON_LENGTH(p_rows) = 1, JSON_EXTRACT(p_rows, '$[0][0]'), NULL);
    DECLARE v_priority smallint;
    DECLARE v_run_at datetime(6);
    DECLARE v_lane varchar(200) CHARACTER SET utf8mb4;
    IF v_one IS NULL AND JSON_EXTRACT(p_rows, '$[0][4]') IS NULL THEN
        DELETE r
        FROM JSON_TABLE(p_rows, '$[*]' COLUMNS (
            id bigint PATH '$[0]', priority smallint PATH '$[2]', run_at datetime(6) PATH '$[3]'
        )) AS j
        STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
            ON r.type = p_type AND r.priority = j.priority AND r.lane = '' AND r.run_at = j.run_at AND r.id = j.id;
    ELSEIF v_one IS NULL THEN
        DELETE r
        FROM JSON_TABLE(p_rows, '$[*]' COLUMNS (
            id bigint PATH '$[0]', priority smallint PATH '$[2]', run_at datetime(6) PATH '$[3]',
            lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[4]'
        )) AS j
        STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
            ON r.type = p_type AND r.priority = j.priority AND r.lane = j.lane AND r.run_at = j.run_at AND r.id = j.id;
    ELSE
        SET v_priority = JSON_EXTRACT(p_rows, '$[0][2]'), v_run_at = JSON_UNQUOTE(JSON_EXTRACT(p_rows, '$[0][3]')),
            v_lane = COALESCE(JSON_UNQUOTE(JSON_EXTRACT(p_rows, '$[0][4]')), '');
        DELETE FROM mq_ready WHERE type = p_type AND priority = v_priority AND lane = v_lane AND run_at = v_run_at AND id = v_one;
    END IF;
END

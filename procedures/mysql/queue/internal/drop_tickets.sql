-- drop_tickets: delete tickets of a grouped queue that are no longer needed.
-- Arguments:   p_type, p_spent ('[id,priority,run_at],...'; NULL: none), p_busy (from read_tickets; NULL: none)
-- Transaction: joins the caller's; skips tickets that others have locked

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_drop_tickets(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_spent longtext CHARACTER SET utf8mb4,
    IN p_busy longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- As many tickets as pick_grouped reads.
    DECLARE c_tickets int DEFAULT 10000;
    DECLARE v_tickets longtext CHARACTER SET utf8mb4;
    IF p_busy IS NOT NULL THEN
        SELECT GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",', JSON_QUOTE(k.lane), ']') INTO v_tickets
        FROM (
            SELECT j.id, j.priority, j.run_at, j.lane
            FROM JSON_TABLE(p_busy, '$[*]' COLUMNS (
                id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                lane varchar(200) CHARACTER SET utf8mb4 PATH '$[3]', first_id bigint PATH '$[4]', first_priority smallint PATH '$[5]',
                first_run_at datetime(6) PATH '$[6]', first_lane varchar(200) CHARACTER SET utf8mb4 PATH '$[7]',
                group_key varchar(200) CHARACTER SET utf8mb4 PATH '$[8]'
            )) AS j
            STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                ON r.type = p_type AND r.priority = j.first_priority AND r.lane = j.first_lane AND r.run_at = j.first_run_at AND r.id = j.first_id
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.first_id
            LIMIT c_tickets
            FOR UPDATE /*!80000 OF r, g */ SKIP LOCKED
        ) AS k;
    END IF;
    SET v_tickets = CONCAT('[', NULLIF(CONCAT_WS(',', p_spent, v_tickets), ''), ']');
    IF v_tickets IS NOT NULL THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',0,', k.priority, ',"', k.run_at, '",', JSON_QUOTE(k.lane), ']'), ']')
        INTO v_tickets
        FROM (
            SELECT r.id, r.priority, r.run_at, r.lane
            FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                lane varchar(200) CHARACTER SET utf8mb4 PATH '$[3]'
            )) AS j
            STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                ON r.type = p_type AND r.priority = j.priority AND r.lane = j.lane AND r.run_at = j.run_at AND r.id = j.id
            LIMIT c_tickets
            FOR UPDATE /*!80000 OF r */ SKIP LOCKED
        ) AS k;
    END IF;
    IF v_tickets IS NOT NULL THEN
        CALL imq_delete_ready(p_type, v_tickets);
    END IF;
END

-- drop_tickets: delete tickets of a grouped queue that are no longer needed; skip those that others have locked.
-- Arguments:   p_tickets (as pick_grouped has read them), p_held (a JSON array of the groups that this claim has taken from),
--              p_blocked (1: also those of blocked groups)
--
-- Of a group that this claim has taken from, all go: the call that unblocks it issues a new one. Of another blocked group, all
-- except the first go, while this call has that ticket and its message locked: a cancel cannot remove them then. Tickets of
-- messages that are not in mq_grouped go; these messages get new tickets when they return.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_drop_tickets(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_tickets longtext CHARACTER SET utf8mb4,
    IN p_held longtext CHARACTER SET utf8mb4, IN p_blocked tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- As many tickets as pick_grouped reads.
    DECLARE c_tickets int DEFAULT 10000;
    DECLARE v_spent, v_blocked, v_tickets longtext CHARACTER SET utf8mb4;
    SELECT GROUP_CONCAT('[', j.id, ',', j.priority, ',"', j.run_at, '",', JSON_QUOTE(j.lane), ']') INTO v_spent
    FROM JSON_TABLE(p_tickets, '$[*]' COLUMNS (
        id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]', what int PATH '$[3]', locked int PATH '$[4]',
        group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[5]',
        lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[6]'
    )) AS j
    LEFT JOIN JSON_TABLE(COALESCE(p_held, '[]'), '$[*]' COLUMNS (
        group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$'
    )) AS h ON h.group_key = j.group_key
    WHERE j.what = 0 OR j.locked AND h.group_key IS NOT NULL;
    IF p_blocked THEN
        SELECT GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",', JSON_QUOTE(k.lane), ']') INTO v_blocked
        FROM (
            SELECT j.id, j.priority, j.run_at, j.lane
            FROM (
                SELECT t.*, ROW_NUMBER() OVER same_group AS nth, FIRST_VALUE(t.id) OVER same_group AS first_id,
                    FIRST_VALUE(t.priority) OVER same_group AS first_priority, FIRST_VALUE(t.run_at) OVER same_group AS first_run_at,
                    FIRST_VALUE(t.lane) OVER same_group AS first_lane
                FROM JSON_TABLE(p_tickets, '$[*]' COLUMNS (
                    n FOR ORDINALITY, id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]', what int PATH '$[3]',
                    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[5]',
                    lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[6]'
                )) AS t
                WHERE t.what = 1
                WINDOW same_group AS (PARTITION BY t.group_key ORDER BY t.n)
                LIMIT c_tickets
            ) AS j
            STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY) ON r.type = p_type AND r.priority = j.first_priority
                AND r.lane = j.first_lane AND r.run_at = j.first_run_at AND r.id = j.first_id
            STRAIGHT_JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                ON g.type = p_type AND g.group_key = j.group_key AND g.id = j.first_id
            WHERE j.nth > 1
            LIMIT c_tickets
            FOR UPDATE /*!80000 OF r, g */ SKIP LOCKED
        ) AS k;
    END IF;
    SET v_tickets = CONCAT('[', NULLIF(CONCAT_WS(',', v_spent, v_blocked), ''), ']');
    IF v_tickets IS NOT NULL THEN
        SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',0,', k.priority, ',"', k.run_at, '",', JSON_QUOTE(k.lane), ']'), ']')
        INTO v_tickets
        FROM (
            SELECT r.id, r.priority, r.run_at, r.lane
            FROM JSON_TABLE(v_tickets, '$[*]' COLUMNS (
                id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]',
                lane varchar(200) CHARACTER SET utf8mb4 /*M! COLLATE utf8mb4_nopad_bin */ PATH '$[3]'
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

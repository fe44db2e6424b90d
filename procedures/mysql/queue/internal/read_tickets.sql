-- read_tickets: read the next tickets of a grouped queue and the state of each ticket's group.
-- Arguments:   p_take (see pick_grouped), p_gate (a message at this place blocks its group), p_places, p_rate and
--              p_rate_seconds (the limits of the queue; 0: none), p_limits (1: groups may have limits of their own), p_size
--              (maximum number of tickets), p_priority, p_lane, p_run_at and p_id (read after this position), p_lanes (from
--              read_lanes: read these tickets instead; NULL: none)
-- Returns:     p_tickets: a JSON array of [id, priority, run_at, what, nth, group key, lane], NULL for none; what: 0 nothing,
--              1 a blocked group, 2 a group that is not blocked, 3 a message that is not in its group yet; nth: number among
--              the tickets of its group. p_read: number of tickets; p_lone: number of tickets with what = 3; p_spent:
--              '[id,priority,run_at,lane],...' of the tickets with what = 0, NULL for none; p_busy: the tickets of blocked
--              groups except the first of each, as a JSON array of [id, priority, run_at, lane, first ticket's id, priority,
--              run_at, lane, group key], NULL when they are few

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_read_tickets(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_take tinyint, IN p_gate int, IN p_places int, IN p_rate int,
    IN p_rate_seconds int, IN p_limits tinyint, IN p_size int, IN p_priority int,
    IN p_lane varchar(200) CHARACTER SET utf8mb4, IN p_run_at datetime(6), IN p_id bigint,
    IN p_lanes longtext CHARACTER SET utf8mb4, OUT p_tickets longtext CHARACTER SET utf8mb4, OUT p_read int,
    OUT p_lone int, OUT p_spent longtext CHARACTER SET utf8mb4, OUT p_busy longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- Dropping tickets costs writes and locks. A few tickets of blocked groups stay, and the next claim reads them again.
    DECLARE c_few int DEFAULT 40;
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_list longtext CHARACTER SET utf8mb4 DEFAULT COALESCE(p_lanes, '[]');
    DECLARE v_size int DEFAULT IF(p_lanes IS NULL, p_size, 0);
    SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",', k.what, ',', k.nth, ',',
        JSON_QUOTE(k.group_key), ',', JSON_QUOTE(k.lane), ']' ORDER BY k.part, k.priority, k.lane, k.run_at, k.id), ']'), COUNT(*),
        COALESCE(SUM(k.what = 3), 0),
        GROUP_CONCAT(IF(k.what = 0, CONCAT('[', k.id, ',', k.priority, ',"', k.run_at, '",', JSON_QUOTE(k.lane), ']'), NULL)),
        IF(SUM(k.what = 1 AND k.nth > 1) > c_few, CONCAT('[', GROUP_CONCAT(IF(k.what = 1 AND k.nth > 1, CONCAT('[', k.id,
            ',', k.priority, ',"', k.run_at, '",', JSON_QUOTE(k.lane), ',', k.first_id, ',', k.first_priority, ',"', k.first_run_at, '",',
            JSON_QUOTE(k.first_lane), ',', JSON_QUOTE(k.group_key), ']'), NULL)), ']'), NULL)
    INTO p_tickets, p_read, p_lone, p_spent, p_busy
    FROM (
        SELECT t.*, ROW_NUMBER() OVER same_group AS nth, FIRST_VALUE(t.id) OVER same_group AS first_id,
            FIRST_VALUE(t.priority) OVER same_group AS first_priority, FIRST_VALUE(t.run_at) OVER same_group AS first_run_at,
            FIRST_VALUE(t.lane) OVER same_group AS first_lane
        FROM (
            SELECT r.part, r.id, r.priority, r.run_at, r.lane, COALESCE(m.group_key, '') AS group_key,
                CASE
                    WHEN m.id IS NULL THEN 0
                    WHEN g.id IS NULL THEN IF(w.id <=> m.id OR e.id IS NOT NULL OR d.id IS NOT NULL OR EXISTS (
                        SELECT * FROM mq_group_lock AS l FORCE INDEX (PRIMARY)
                        WHERE l.type = m.type AND l.group_key = COALESCE(m.group_key, '') AND l.id = m.id
                    ), 0, 3)
                    WHEN w.id IS NOT NULL OR COALESCE(o.max_active, p_places) > 0 AND (
                        SELECT COUNT(*) FROM mq_group_lock AS l FORCE INDEX (PRIMARY)
                        WHERE l.type = m.type AND l.group_key = COALESCE(m.group_key, '')
                    ) >= COALESCE(o.max_active, p_places) THEN 1
                    ELSE 2
                END AS what
            FROM (
                (SELECT 0 AS part, t.id, t.priority, t.run_at, t.lane
                FROM mq_ready AS t FORCE INDEX (PRIMARY)
                WHERE t.type = p_type AND t.attempts >= 0
                    AND (t.priority > p_priority OR t.priority = p_priority AND (t.lane > p_lane OR t.lane = p_lane
                        AND (t.run_at > p_run_at OR t.run_at = p_run_at AND t.id > p_id)))
                    -- A take leaves the tickets of blocked groups to claims. Its scan leaves them out: they would use up
                    -- its limit.
                    AND NOT (p_take AND (
                        SELECT MAX(w.id IS NOT NULL
                            OR COALESCE(o.max_active, p_places) > 0 AND (
                                SELECT COUNT(*) FROM mq_group_lock AS l FORCE INDEX (PRIMARY)
                                WHERE l.type = m.type AND l.group_key = COALESCE(m.group_key, '')
                            ) >= COALESCE(o.max_active, p_places)
                            OR COALESCE(b.full_at > v_now + INTERVAL COALESCE(o.rate_seconds, p_rate_seconds) SECOND
                                - INTERVAL (COALESCE(o.rate_seconds, p_rate_seconds) * 1000000 + COALESCE(o.rate, p_rate) - 1)
                                    DIV NULLIF(COALESCE(o.rate, p_rate), 0) MICROSECOND, 0))
                        FROM mq_message AS m FORCE INDEX (PRIMARY)
                        LEFT JOIN mq_group_lock AS w FORCE INDEX (PRIMARY)
                            ON w.type = m.type AND w.group_key = COALESCE(m.group_key, '') AND w.place = p_gate
                        LEFT JOIN mq_queue_group AS o FORCE INDEX (PRIMARY)
                            ON p_limits AND o.type = m.type AND o.group_key = COALESCE(m.group_key, '')
                        LEFT JOIN mq_bucket AS b FORCE INDEX (PRIMARY)
                            ON b.type = m.type AND b.group_key = COALESCE(m.group_key, '')
                        WHERE m.id = t.id
                    ) > 0)
                ORDER BY t.priority, t.lane, t.run_at, t.id
                LIMIT v_size)
                UNION ALL
                (SELECT j.n, j.id, j.priority, j.run_at, j.lane
                FROM JSON_TABLE(v_list, '$[*]' COLUMNS (
                    n FOR ORDINALITY, id bigint PATH '$[0]', priority smallint PATH '$[2]', run_at datetime(6) PATH '$[3]',
                    lane varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ PATH '$[4]'
                )) AS j)
            ) AS r
            LEFT JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = r.id
            LEFT JOIN mq_queue_group AS o FORCE INDEX (PRIMARY)
                ON p_limits AND o.type = m.type AND o.group_key = COALESCE(m.group_key, '')
            LEFT JOIN mq_group_lock AS w FORCE INDEX (PRIMARY)
                ON w.type = m.type AND w.group_key = COALESCE(m.group_key, '') AND w.place = p_gate
            LEFT JOIN mq_grouped AS g FORCE INDEX (PRIMARY)
                ON g.type = m.type AND g.group_key = COALESCE(m.group_key, '') AND g.id = m.id
            LEFT JOIN mq_dead AS e FORCE INDEX (PRIMARY) ON e.id = m.id AND g.id IS NULL
            LEFT JOIN mq_delayed AS d FORCE INDEX (PRIMARY)
                ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id AND g.id IS NULL
        ) AS t
        WINDOW same_group AS (PARTITION BY t.group_key ORDER BY t.what = 0, t.part, t.priority, t.lane, t.run_at, t.id)
    ) AS k;
END

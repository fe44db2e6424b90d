-- pick_outside: take messages of a ring in order of id while some of them are outside the ring.
-- Arguments:   p_type, p_size, p_after (start after this id, and continue at the lowest)
-- Returns:     p_items: a JSON array of [id, number of this attempt, priority, run_at]; NULL for none
-- Transaction: joins the caller's; skips rows that others have locked

DROP PROCEDURE IF EXISTS imq_pick_outside;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_pick_outside(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_after bigint,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    -- Search more rows than needed, because others have locked some: a claim that moves messages locks 2,000, other claims
    -- what they take.
    DECLARE c_rows int DEFAULT 4000;
    DECLARE c_tries int DEFAULT 5;
    DECLARE v_near int DEFAULT p_size + 1000;
    DECLARE v_tries int DEFAULT 0;
    DECLARE v_found longtext CHARACTER SET utf8mb4;
    -- Other claims may have taken everything that was found before it is locked: search again.
    tries: LOOP
        SET v_tries = v_tries + 1;
        SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.priority, ',"', r.run_at, '"]' ORDER BY r.id <= p_after, r.id), ']')
        INTO v_found
        FROM (
            (SELECT id, priority, run_at
            FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND (priority > -32768 OR priority = -32768 AND run_at > '1000-01-01') AND attempts >= 0
            ORDER BY priority, run_at, id
            LIMIT c_rows)
            UNION ALL
            (SELECT id, priority, run_at
            FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id > p_after AND attempts >= 0
            ORDER BY id
            LIMIT v_near)
            UNION ALL
            (SELECT id, priority, run_at
            FROM mq_ready FORCE INDEX (PRIMARY)
            WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id <= p_after AND attempts >= 0
            ORDER BY id
            LIMIT v_near)
        ) AS r;
        SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',', r.priority, ',"', r.run_at, '"]'
            ORDER BY r.id <= p_after, r.id), ']')
        INTO p_items
        FROM (
            SELECT r.id, r.attempts, r.priority, r.run_at
            FROM JSON_TABLE(v_found, '$[*]' COLUMNS (
                id bigint PATH '$[0]', priority smallint PATH '$[1]', run_at datetime(6) PATH '$[2]'
            )) AS j
            STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
                ON r.type = p_type AND r.priority = j.priority AND r.run_at = j.run_at AND r.id = j.id
            LIMIT p_size
            FOR UPDATE /*!80000 OF r */ SKIP LOCKED
        ) AS r;
        IF p_items IS NOT NULL OR v_found IS NULL OR v_tries = c_tries THEN
            LEAVE tries;
        END IF;
    END LOOP;
    IF p_items IS NOT NULL THEN
        CALL imq_delete_ready(p_type, p_items);
    END IF;
END//

DELIMITER ;

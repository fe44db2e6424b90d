-- take_ring: take messages of a ring in order of id, and skip messages that another transaction has locked.
-- Arguments:   p_type, p_size (maximum number of messages), p_after and p_until (ids above p_after, up to p_until)
-- Returns:     p_items: a JSON array of [id, number of this attempt, priority, run_at]; NULL for none
-- Transaction: joins the caller's; skips rows that others have locked

DROP PROCEDURE IF EXISTS imq_take_ring;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_take_ring(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_after bigint,
    IN p_until bigint,
    OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    SELECT CONCAT('[', GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',-32768,"1000-01-01"]' ORDER BY r.id), ']')
    INTO p_items
    FROM (
        SELECT id, attempts
        FROM mq_ready FORCE INDEX (PRIMARY)
        WHERE type = p_type AND priority = -32768 AND run_at = '1000-01-01' AND id > p_after AND id <= p_until
        ORDER BY id
        LIMIT p_size
        FOR UPDATE SKIP LOCKED
    ) AS r;
    IF p_items IS NOT NULL THEN
        DELETE r
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_ready AS r FORCE INDEX (PRIMARY)
            ON r.type = p_type AND r.priority = -32768 AND r.run_at = '1000-01-01' AND r.id = j.id;
    END IF;
END//

DELIMITER ;

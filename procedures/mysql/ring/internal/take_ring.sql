-- take_ring: lock ready messages of a ring in order of id, and skip messages that another transaction has locked.
-- Arguments:   p_after and p_until (ids above p_after, up to p_until)
-- Returns:     p_found: '[id,number of the new attempt,priority,run_at],...', NULL for none; p_count; p_first and p_last: ids
--
-- All messages of the queue have one priority and one run_at, so the primary key of mq_ready has the order of the ids.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_take_ring(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_after bigint, IN p_until bigint, IN p_size int,
    OUT p_found longtext CHARACTER SET utf8mb4, OUT p_count int, OUT p_first bigint, OUT p_last bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    SELECT GROUP_CONCAT('[', r.id, ',', r.attempts + 1, ',-32768,"1000-01-01"]' ORDER BY r.id), COUNT(*), MIN(r.id), MAX(r.id)
    INTO p_found, p_count, p_first, p_last
    FROM (
        SELECT id, attempts
        FROM mq_ready FORCE INDEX (PRIMARY)
        WHERE type = p_type AND priority = -32768 AND lane = '' AND run_at = '1000-01-01' AND id > p_after AND id <= p_until
        ORDER BY id
        LIMIT p_size
        FOR UPDATE SKIP LOCKED
    ) AS r;
END

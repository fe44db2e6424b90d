-- save_position: save the position of a round-robin consumer or of a fair queue, and delete its older positions.
-- Arguments:   p_n, p_after_id and p_lane (see the table mq_ring), p_from_n to p_until_id (delete the positions from p_from_n to
--              before p_until_n, and those of p_until_n with an after_id in this range; NULL: none)
--
-- The callers' ranges contain the position that the claim read, and those that concurrent claims left shortly before it.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_save_position(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_consumer varchar(200) CHARACTER SET utf8mb4, IN p_n bigint,
    IN p_after_id bigint, IN p_lane varchar(200) CHARACTER SET utf8mb4, IN p_from_n bigint, IN p_until_n bigint,
    IN p_from_id bigint, IN p_until_id bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_positions longtext CHARACTER SET utf8mb4;
    INSERT INTO mq_ring (n, after_id, type, consumer, lane) VALUES (p_n, p_after_id, p_type, p_consumer, p_lane);
    SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']') INTO v_positions
    FROM (
        -- The condition on lane is always true; see lock_ready.
        SELECT id FROM mq_ring FORCE INDEX (ring_newest)
        WHERE type = p_type AND consumer = p_consumer AND lane >= '' AND (n BETWEEN p_from_n AND p_until_n - 1
            OR n = p_until_n AND after_id BETWEEN p_from_id AND p_until_id)
        FOR UPDATE SKIP LOCKED
    ) AS k;
    IF v_positions IS NOT NULL THEN
        DELETE k
        FROM JSON_TABLE(v_positions, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_ring AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
    END IF;
END

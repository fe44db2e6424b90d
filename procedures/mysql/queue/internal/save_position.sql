-- save_position: save the position of a round-robin reader, and delete its older positions.
-- Arguments:   p_type, p_reader, p_size (of the claim), p_round and p_last_id (the round and the last id), p_n and
--              p_after_id (the position that the claim read; NULL: there was none)
-- Transaction: joins the caller's; never waits for another claim

DROP PROCEDURE IF EXISTS imq_save_position;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_save_position(
    IN p_type varchar(200) CHARACTER SET utf8mb4,
    IN p_reader varchar(200) CHARACTER SET utf8mb4,
    IN p_size int,
    IN p_round bigint,
    IN p_last_id bigint,
    IN p_n bigint,
    IN p_after_id bigint
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE c_highest bigint DEFAULT 9223372036854775807;
    -- Delete the position that the claim read and those that concurrent claims left shortly before it; at the end of a
    -- round, those of the last two rounds.
    DECLARE v_from_n bigint DEFAULT IF(p_round = p_n, p_n, p_n - 1);
    DECLARE v_from_id bigint DEFAULT IF(p_round = p_n, p_after_id - 20 * p_size, -c_highest);
    DECLARE v_until_id bigint DEFAULT IF(p_round = p_n, p_after_id, c_highest);
    DECLARE v_positions longtext CHARACTER SET utf8mb4;
    INSERT INTO mq_ring (n, after_id, type, reader) VALUES (p_round, p_last_id, p_type, p_reader);
    SELECT CONCAT('[', GROUP_CONCAT('[', k.id, ']'), ']')
    INTO v_positions
    FROM (
        SELECT id FROM mq_ring FORCE INDEX (ring_newest)
        WHERE type = p_type AND reader = p_reader AND n BETWEEN v_from_n AND p_n AND after_id BETWEEN v_from_id AND v_until_id
            AND low_until IS NULL
        FOR UPDATE SKIP LOCKED
    ) AS k;
    IF v_positions IS NOT NULL THEN
        DELETE k
        FROM JSON_TABLE(v_positions, '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j
        STRAIGHT_JOIN mq_ring AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
    END IF;
END//

DELIMITER ;

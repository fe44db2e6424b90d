-- claim_ring: take messages of a ring where a consumer stopped, in order of id, and save where it stops now.
-- Arguments:   p_type, p_size, p_consumer, p_after_id (start after this id; NULL: where this consumer stopped)
-- Returns:     p_items: as from pick, the messages after that id, then those from the lowest id on; NULL when nothing is ready
--
-- The position of a consumer (round and id) is inserted, not updated, like the marks in mq_mark: no claim waits for it. When
-- two claims of one consumer start at the same position, the position further ahead counts.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_claim_ring(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_consumer varchar(200) CHARACTER SET utf8mb4,
    IN p_after_id bigint, OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_n, v_position, v_after, v_last_id bigint;
    DECLARE v_same tinyint;
    BEGIN
        DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_n = NULL;
        SELECT n, after_id INTO v_n, v_position
        FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND consumer = p_consumer ORDER BY n DESC, after_id DESC LIMIT 1;
    END;
    SET v_after = COALESCE(p_after_id, v_position, 0);
    CALL imq_pick(p_type, 0, 0, p_size, 0, v_after, p_items);
    IF p_items IS NOT NULL THEN
        SET v_last_id = JSON_EXTRACT(p_items, CONCAT('$[', JSON_LENGTH(p_items) - 1, '][0]'));
        -- The same round if the claim ended after its start.
        SET v_same = p_after_id IS NULL AND v_last_id > v_after;
        CALL imq_save_position(p_type, p_consumer, COALESCE(v_n, 0) + (NOT v_same), v_last_id, '',
            IF(v_same, v_n, v_n - 1), v_n, IF(v_same, v_position - 20 * p_size, -9223372036854775807),
            IF(v_same, v_position, 9223372036854775807));
    END IF;
END

-- claim_ring: take messages of a ring where a consumer stopped, in order of id, and save where it stops now; skip messages
--             that another transaction has locked.
-- Arguments:   p_after_id (start after this id; NULL: where this consumer stopped), p_places (the mark, as in pick: no message
--              before it is ready; '[]': start at the lowest id)
-- Returns:     p_items: as from lock_ready, the messages after that id, then those from the lowest id on; NULL for none; p_low:
--              the new mark, '[]' when the call did not search for the lowest id; p_front_moved: 1 when the mark must be renewed
--
-- The position of a consumer (round and id) is inserted, not updated, like the marks in mq_mark: no claim waits for it. When two
-- claims of one consumer start at the same position, the position further ahead counts.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_claim_ring(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_size int, IN p_consumer varchar(200) CHARACTER SET utf8mb4,
    IN p_after_id bigint, IN p_places longtext CHARACTER SET utf8mb4, OUT p_items longtext CHARACTER SET utf8mb4,
    OUT p_low longtext CHARACTER SET utf8mb4, OUT p_front_moved tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- As in lock_ready.
    DECLARE c_stride bigint DEFAULT 1000;
    DECLARE v_mark bigint DEFAULT IF(JSON_EXTRACT(p_places, '$[0][0]') = -32768, JSON_EXTRACT(p_places, '$[0][2]'), NULL);
    DECLARE v_from bigint DEFAULT COALESCE(v_mark, -9223372036854775807) - 1;
    DECLARE v_n, v_position, v_after, v_first, v_last, v_more_first, v_more_last bigint;
    DECLARE v_count int;
    DECLARE v_same tinyint;
    DECLARE v_more longtext CHARACTER SET utf8mb4;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    SELECT n, after_id INTO v_n, v_position
    FROM mq_ring FORCE INDEX (ring_newest) WHERE type = p_type AND consumer = p_consumer ORDER BY n DESC, after_id DESC LIMIT 1;
    SET p_low = '[]', p_front_moved = 0, v_after = COALESCE(p_after_id, v_position, 0);
    CALL imq_take_ring(p_type, GREATEST(v_after, v_from), 9223372036854775807, p_size, p_items, v_count, v_first, v_last);
    IF v_count < p_size THEN
        CALL imq_take_ring(p_type, v_from, v_after, p_size - v_count, v_more, v_count, v_more_first, v_more_last);
        SET p_items = NULLIF(CONCAT_WS(',', p_items, v_more), ''), v_first = COALESCE(v_more_first, v_first),
            v_last = COALESCE(v_more_last, v_last);
        IF p_items IS NULL THEN
            -- No message is ready: those that are sent from now on have higher ids.
            SELECT COALESCE(MAX(id), 0) INTO v_first FROM mq_message;
        END IF;
        SET p_low = CONCAT('[[-32768,"1000-01-01",', v_first, ']]'),
            p_front_moved = v_mark IS NOT NULL AND v_first NOT BETWEEN v_mark AND v_mark + c_stride;
    END IF;
    IF p_items IS NOT NULL THEN
        SET p_items = CONCAT('[', p_items, ']');
        CALL imq_delete_ready(p_type, p_items);
        -- The same round if the claim ended after its start.
        SET v_same = p_after_id IS NULL AND v_last > v_after;
        CALL imq_save_position(p_type, p_consumer, COALESCE(v_n, 0) + (NOT v_same), v_last, '',
            IF(v_same, v_n, v_n - 1), v_n, IF(v_same, v_position - 20 * p_size, -9223372036854775807),
            IF(v_same, v_position, 9223372036854775807));
    END IF;
END

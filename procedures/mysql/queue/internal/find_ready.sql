-- find_ready: the position of a message in mq_ready: its own, its lane in a fair queue, or its position in a ring.
-- Arguments:   p_priority, p_run_at and p_group_key ('' for none) of the message
-- Returns:     p_in_priority, p_lane, p_in_run_at: its own position if it is not in mq_ready
--
-- Not by the policy: set_queue leaves rows that others have locked to later claims (see move_ready).

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_find_ready(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_id bigint, IN p_priority smallint, IN p_run_at datetime(6),
    IN p_group_key varchar(200) CHARACTER SET utf8mb4, OUT p_in_priority smallint,
    OUT p_lane varchar(200) CHARACTER SET utf8mb4, OUT p_in_run_at datetime(6)
)
SQL SECURITY DEFINER READS SQL DATA
BEGIN
    DECLARE v_in_lane, v_in_ring tinyint;
    SELECT EXISTS (
            SELECT * FROM mq_ready WHERE type = p_type AND priority = p_priority AND lane = p_group_key AND run_at = '1000-01-01' AND id = p_id
        ), EXISTS (
            SELECT * FROM mq_ready WHERE type = p_type AND priority = -32768 AND lane = '' AND run_at = '1000-01-01' AND id = p_id
        )
    INTO v_in_lane, v_in_ring;
    SET p_in_priority = IF(v_in_ring, -32768, p_priority), p_in_run_at = IF(v_in_lane OR v_in_ring, '1000-01-01', p_run_at),
        p_lane = IF(v_in_lane, p_group_key, '');
END

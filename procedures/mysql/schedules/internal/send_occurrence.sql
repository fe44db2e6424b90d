-- send_occurrence: send a schedule's message and record it as the last one.
-- Arguments:   p_name (of the schedule, whose row is locked), p_run_at (when it was due)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_send_occurrence(
    IN p_name varchar(200) CHARACTER SET utf8mb4, IN p_run_at datetime(6), OUT p_id bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type, v_group_key varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_priority, v_created, v_changed smallint;
    DECLARE v_body, v_headers longtext CHARACTER SET utf8mb4;
    SELECT type, body, priority, group_key, headers INTO v_type, v_body, v_priority, v_group_key, v_headers
    FROM mq_schedule WHERE name = p_name FOR UPDATE;
    CALL imq_send_one(v_type, v_body, p_run_at, v_priority, v_group_key, NULL, NULL, v_headers, 'schedule', NULL, NULL, 0, p_id,
        v_created, v_changed);
    UPDATE mq_schedule SET last_at = p_run_at, last_id = p_id WHERE name = p_name;
END

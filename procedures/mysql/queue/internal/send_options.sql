-- send_options: the options of a message that is sent, checked as far as JSON goes; see require_message.
-- Arguments:   p_options, p_many (1: for several messages, which have no dedup_key and so no on_conflict)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_send_options(
    IN p_options longtext CHARACTER SET utf8mb4, IN p_many tinyint, OUT p_run_at datetime(6), OUT p_priority bigint,
    OUT p_group_key longtext CHARACTER SET utf8mb4, OUT p_dedup_key longtext CHARACTER SET utf8mb4, OUT p_max_attempts bigint,
    OUT p_headers longtext CHARACTER SET utf8mb4, OUT p_source longtext CHARACTER SET utf8mb4, OUT p_delay_seconds bigint,
    OUT p_on_conflict longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_known text CHARACTER SET utf8mb4 DEFAULT '{"run_at": "time", "priority": [-32768, 32767], "group_key": "text",
        "dedup_key": "text", "max_attempts": [1, 1000], "headers": "text", "source": "text", "delay_seconds": [0, 315360000],
        "on_conflict": "text"}';
    DECLARE v_read longtext CHARACTER SET utf8mb4;
    IF p_options IS NOT NULL THEN
        CALL imq_read_options(p_options, 'options', IF(p_many, JSON_REMOVE(c_known, '$.dedup_key', '$.on_conflict'), c_known), NULL,
            v_read);
        SELECT j.run_at, j.priority, j.group_key, j.dedup_key, j.max_attempts, j.headers, j.source, j.delay_seconds, j.on_conflict
        INTO p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers, p_source, p_delay_seconds, p_on_conflict
        FROM JSON_TABLE(v_read, '$' COLUMNS (run_at varchar(30) PATH '$.run_at', priority int PATH '$.priority',
            group_key longtext CHARACTER SET utf8mb4 PATH '$.group_key', dedup_key longtext CHARACTER SET utf8mb4 PATH '$.dedup_key',
            max_attempts int PATH '$.max_attempts', headers longtext CHARACTER SET utf8mb4 PATH '$.headers',
            source longtext CHARACTER SET utf8mb4 PATH '$.source', delay_seconds int PATH '$.delay_seconds',
            on_conflict longtext CHARACTER SET utf8mb4 PATH '$.on_conflict')) AS j;
    END IF;
END

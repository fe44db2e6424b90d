-- complete_messages: complete messages: delete them, or archive them if the queue's policy is archive.
-- Arguments:   p_type, p_on_complete and p_grouped (the policy; NULL: read it), p_items (a JSON array of [id, attempt]), p_consumer

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_complete_messages(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_on_complete varchar(7) CHARACTER SET ascii, IN p_grouped tinyint,
    IN p_items longtext CHARACTER SET utf8mb4, IN p_consumer varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    IF p_on_complete IS NULL THEN
        SELECT on_complete, grouped INTO p_on_complete, p_grouped
        FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    END IF;
    IF p_on_complete = 'archive' THEN
        INSERT INTO mq_archive (id, completed_at, created_at, priority, attempts, month, type, body, headers, group_key,
            dedup_key, source, consumer, result)
        SELECT m.id, v_now, m.created_at, m.priority, j.attempt, MONTH(v_now), m.type, m.body, m.headers, m.group_key,
            m.dedup_key, m.source, p_consumer, k.result
        FROM JSON_TABLE(p_items, '$[*]' COLUMNS (id bigint PATH '$[0]', attempt smallint PATH '$[1]')) AS j
        STRAIGHT_JOIN mq_message AS m FORCE INDEX (PRIMARY) ON m.id = j.id
        LEFT JOIN mq_result AS k FORCE INDEX (PRIMARY) ON k.id = j.id;
        CALL imq_delete_results(p_items);
    END IF;
    IF p_grouped THEN
        CALL imq_free_groups(p_type, p_items);
    END IF;
    CALL imq_delete_messages(p_items);
    -- Only now: that has waited for a transaction that was saving a step.
    CALL imq_move_steps(p_items, IF(p_on_complete = 'archive', MONTH(v_now), NULL));
END

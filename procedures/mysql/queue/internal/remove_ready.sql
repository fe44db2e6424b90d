-- remove_ready: remove one ready message that is not claimed from mq_ready; in an ordered queue it then blocks its group.
-- Returns:     p_type, p_attempt (the number of the next attempt) and p_consumer (the caller); p_type is NULL when the
--              message is not ready, is being claimed, or its group is blocked in an ordered queue

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_remove_ready(
    IN p_id bigint, OUT p_type varchar(200) CHARACTER SET utf8mb4, OUT p_attempt int,
    OUT p_consumer varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
whole: BEGIN
    DECLARE v_type, v_group varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_error text CHARACTER SET utf8mb4;
    DECLARE v_priority smallint;
    DECLARE v_run_at datetime(6);
    DECLARE v_ordered, v_grouped, v_others, v_later tinyint;
    DECLARE v_stripe int;
    SELECT MAX(m.type), MAX(COALESCE(m.group_key, '')), MAX(m.priority), MAX(m.run_at)
    INTO v_type, v_group, v_priority, v_run_at
    FROM mq_message AS m WHERE m.id = p_id;
    IF v_type IS NULL THEN
        LEAVE whole;
    END IF;
    SELECT ordered, grouped INTO v_ordered, v_grouped FROM mq_queue WHERE type IN (v_type, '') ORDER BY type DESC LIMIT 1;
    IF v_ordered THEN
        SELECT MAX(s.n) INTO v_stripe
        FROM (
            SELECT n FROM mq_stripe WHERE n = CRC32(CONCAT(v_type, '\n', v_group)) MOD 16384 FOR UPDATE SKIP LOCKED
        ) AS s;
        SELECT MAX(l.id <> p_id) INTO v_others FROM mq_group_lock AS l WHERE l.type = v_type AND l.group_key = v_group;
    END IF;
    -- A due message may still be delayed: the rollback of the take also undid its promotion.
    SELECT EXISTS (
        SELECT * FROM mq_delayed WHERE type = v_type AND run_at = v_run_at AND id = p_id AND run_at > UTC_TIMESTAMP(6)
    ) INTO v_later;
    IF v_later OR v_others OR v_ordered AND v_stripe IS NULL THEN
        LEAVE whole;
    END IF;

    CALL imq_leave_place(v_type, v_grouped, p_id, v_group, v_priority, v_run_at, p_attempt, v_error);
    IF p_attempt IS NOT NULL THEN
        IF v_ordered THEN
            -- As after a claim: the message blocks its group. After a failure it does already.
            INSERT IGNORE INTO mq_group_lock (type, group_key, place, id) VALUES (v_type, v_group, -1, p_id);
        ELSEIF v_grouped THEN
            -- The message's ticket is not needed any more.
            CALL imq_issue_tickets(v_type, JSON_ARRAY(v_group));
        END IF;
        SET p_type = v_type, p_attempt = p_attempt + 1;
        CALL imq_consumer_name(NULL, p_consumer);
    END IF;
END

-- enter_place: insert a message that leave_place has removed where a new message with this run_at goes.
-- Arguments:   p_type, p_grouped (the policy), p_ring, p_fair, p_id, p_group_key ('' for none), p_priority and p_run_at (its
--              new ones, which mq_message already has), p_now (when the call began), p_attempts and p_error (from
--              leave_place), p_unblock (1: in a grouped queue, it no longer blocks its group)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_enter_place(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_grouped tinyint, IN p_ring tinyint, IN p_fair tinyint,
    IN p_id bigint, IN p_group_key varchar(200) CHARACTER SET utf8mb4, IN p_priority smallint, IN p_now datetime(6),
    IN p_run_at datetime(6), IN p_attempts smallint, IN p_error text CHARACTER SET utf8mb4, IN p_unblock tinyint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_groups longtext CHARACTER SET utf8mb4;
    IF p_run_at > p_now THEN
        INSERT INTO mq_delayed (type, run_at, id, priority, attempts, error)
        VALUES (p_type, p_run_at, p_id, p_priority, p_attempts, p_error);
    ELSEIF p_grouped THEN
        INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (p_type, p_group_key, p_id, p_attempts);
    ELSE
        INSERT INTO mq_ready (type, priority, lane, run_at, id, attempts)
        VALUES (p_type, IF(p_ring, -32768, p_priority), IF(p_fair, p_group_key, ''), IF(p_ring OR p_fair, '1000-01-01', p_run_at), p_id,
            p_attempts);
    END IF;
    IF p_run_at < p_now OR p_ring THEN
        CALL imq_lower_mark(p_type);
    END IF;
    IF p_grouped AND p_unblock THEN
        CALL imq_drop_locks(p_type, CONCAT('[[', p_id, ']]'), v_groups);
    END IF;
    IF p_grouped THEN
        CALL imq_issue_tickets(p_type, JSON_ARRAY(p_group_key));
    END IF;
END

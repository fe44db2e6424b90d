-- bind_topic: from now on, each message published to a matching topic is sent to this type.
-- Arguments:   p_pattern (a topic, or with words * and # a pattern), p_type; both have 1 to 200 characters
-- Returns:     created (0: it was bound so already)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls that change bindings wait for each other; what is published after its commit is sent
-- Example:     CALL mq_bind_topic('orders.*.paid', 'invoice');

DROP PROCEDURE IF EXISTS mq_bind_topic;

DELIMITER //

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_bind_topic(
    IN p_pattern longtext CHARACTER SET utf8mb4,
    IN p_type longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER
MODIFIES SQL DATA
BEGIN
    DECLARE v_path text CHARACTER SET ascii;
    DECLARE v_created smallint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL mq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL mq_require_topic('pattern', p_pattern, 1);
    CALL mq_require_name('type', p_type, 0);
    CALL mq_begin_call(0, v_own);
    CALL mq_lock_bindings();
    CALL mq_topic_path(p_pattern, v_path);
    -- IGNORE: a driver may let ON DUPLICATE KEY count rows that were there.
    INSERT IGNORE INTO mq_binding (pattern, type, wild, path)
    VALUES (p_pattern, p_type, p_pattern REGEXP '[*#]', v_path);
    SET v_created = ROW_COUNT();
    CALL mq_end_call(v_own);
    SELECT v_created AS created;
END//

DELIMITER ;

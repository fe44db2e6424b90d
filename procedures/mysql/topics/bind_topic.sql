-- bind_topic: send each message that is published to a matching topic to this queue.
-- Arguments:   p_pattern (words separated by dots; * matches exactly one word, # zero or more), p_type; both have 1 to
--              200 characters
-- Returns:     created: 1; 0 when the binding already exists
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls that change bindings wait for each other; applies to messages published after
--              its commit
-- Example:     CALL mq_bind_topic('orders.*.paid', 'invoice');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_bind_topic(
    IN p_pattern longtext CHARACTER SET utf8mb4,
    IN p_type longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_path text CHARACTER SET ascii;
    DECLARE v_created smallint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_topic('pattern', p_pattern, 1);
    CALL imq_require_name('type', p_type, 0);
    CALL imq_begin_call(0, v_own);
    CALL imq_lock_bindings();
    CALL imq_topic_path(p_pattern, v_path);
    -- IGNORE, because some drivers make ON DUPLICATE KEY count existing rows.
    INSERT IGNORE INTO mq_binding (pattern, type, wild, path)
    VALUES (p_pattern, p_type, p_pattern REGEXP '[*#]', v_path);
    SET v_created = ROW_COUNT();
    CALL imq_end_call(v_own);
    SELECT v_created AS created;
END

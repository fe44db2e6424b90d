-- unbind_topic: remove the bindings of a pattern, of a queue, or one.
-- Arguments:   p_pattern (as it was bound; NULL: all of the queue), p_type (NULL: all of the pattern); 1 to 200 characters, and
--              not both NULL
-- Returns:     affected: bindings removed
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls that change bindings wait for each other; messages that were sent stay
-- Example:     CALL mq_unbind_topic('orders.*.paid', 'invoice');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_unbind_topic(
    IN p_pattern longtext CHARACTER SET utf8mb4,
    IN p_type longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF p_pattern IS NOT NULL THEN
        CALL imq_require_topic('pattern', p_pattern, 1);
    ELSEIF p_type IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'pattern: give a pattern, a type, or both');
    END IF;
    CALL imq_require_name('type', p_type, 1);
    CALL imq_begin_call(0, v_own);
    CALL imq_lock_bindings();
    DELETE FROM mq_binding WHERE (p_pattern IS NULL OR pattern = p_pattern) AND (p_type IS NULL OR type = p_type);
    SET v_count = ROW_COUNT();
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END

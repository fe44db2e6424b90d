-- unsubscribe: delete subscriptions of a table.
-- Arguments:   p_table (a watched table), p_action (I, U or D, or several of them; NULL: all), p_type or p_topic (both NULL:
--              all); the last three are not all NULL
-- Returns:     affected: subscriptions deleted
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; messages that were sent stay
-- Example:     CALL mq_unsubscribe('stock', NULL, 'stock.changed', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_unsubscribe(
    IN p_table longtext CHARACTER SET utf8mb4,
    IN p_action longtext CHARACTER SET utf8mb4,
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_topic longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_label, v_quoted longtext CHARACTER SET utf8mb4;
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF COALESCE(p_action, p_type, p_topic) IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'action: give an action, a type or a topic; IUD selects all');
    END IF;
    CALL imq_require_actions(p_action, 1);
    IF p_type IS NOT NULL AND p_topic IS NOT NULL THEN
        CALL imq_raise_error('invalid_argument', 'type: give either a type or a topic');
    END IF;
    CALL imq_require_name('type', p_type, 1);
    IF p_topic IS NOT NULL THEN
        CALL imq_require_topic('topic', p_topic, 0);
    END IF;
    CALL imq_begin_call(0, v_own);
    CALL imq_find_watched(p_table, 'Select', v_label, v_quoted);
    -- As in subscribe: sessions that change a table's subscriptions wait here. With row locks alone they could deadlock.
    SELECT COUNT(*) INTO v_count FROM mq_watched WHERE label = v_label FOR UPDATE;
    DELETE FROM mq_subscription
    WHERE label = v_label AND (p_action IS NULL OR LOCATE(action, p_action) > 0) AND (p_type IS NULL OR type = p_type) AND (p_topic IS NULL OR topic = p_topic);
    SET v_count = ROW_COUNT();
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END

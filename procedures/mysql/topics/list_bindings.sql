-- list_bindings: list all bindings, or those whose pattern matches a topic.
-- Arguments:   p_topic (words separated by dots; NULL: all bindings)
-- Returns:     pattern, type: one row per binding, in this order
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     CALL mq_list_bindings('orders.eu.paid');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_bindings(IN p_topic longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_path text CHARACTER SET ascii;
    IF p_topic IS NOT NULL THEN
        CALL imq_require_topic('topic', p_topic, 0);
        CALL imq_topic_path(p_topic, v_path);
    END IF;
    SELECT b.pattern, b.type
    FROM mq_binding AS b
    WHERE p_topic IS NULL OR v_path LIKE b.path
    ORDER BY b.pattern, b.type;
END

-- publish: send one message to each type that is bound to the topic.
-- Arguments:   p_topic (words separated by dots, 1 to 200 characters), p_body (up to 16 MiB)
-- Returns:     affected: messages sent
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     CALL mq_publish('orders.eu.paid', '{"order":17}');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_publish(
    IN p_topic longtext CHARACTER SET utf8mb4,
    IN p_body longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL mq_publish_with(p_topic, p_body, NULL);
END

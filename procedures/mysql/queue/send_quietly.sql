-- send_quietly: send one message that is ready now and return no rows: for triggers, and for ORMs inside a transaction.
-- Arguments:   p_type (1 to 200 characters), p_body (up to 16 MiB)
-- Returns:     nothing; LAST_INSERT_ID() returns the id of the message
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the message can be claimed when it commits
-- Example:     CALL mq_send_quietly('email', '{"to":"ada@example.org"}');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_send_quietly(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_body longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL mq_send_message_quietly(p_type, p_body, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
END

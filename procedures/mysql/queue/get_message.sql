-- get_message: claim the first ready message, with the queue's lease.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     one message; no row when nothing is ready, no limit allows it, or the queue is paused
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for another claim
-- Example:     CALL mq_get_message('email');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_get_message(IN p_type longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL mq_claim_batch(p_type, 1, NULL, NULL);
END

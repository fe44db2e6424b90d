-- pause: stop the claims of a queue; claimed messages can still be finished, and sending continues.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     affected (1; 0 when the queue was already paused), known (0: nothing had this name)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one type wait for each other
-- Example:     CALL mq_pause('email');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_pause(IN p_type longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_own, v_known tinyint;
    DECLARE v_count bigint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_begin_call(0, v_own);
    CALL imq_is_known(p_type, v_known);
    CALL imq_add_queue(p_type);
    UPDATE mq_queue SET paused = 1 WHERE type = p_type AND paused = 0;
    SET v_count = ROW_COUNT();
    CALL imq_end_call(v_own);
    SELECT v_count AS affected, v_known AS known;
END

-- resume: allow the claims of a paused queue again.
-- Arguments:   p_type (1 to 200 characters)
-- Returns:     affected (1; 0 when the queue was not paused), known (0: nothing had this name)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one type wait for each other
-- Example:     CALL mq_resume('email');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_resume(IN p_type longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_own, v_all, v_known tinyint;
    DECLARE v_count bigint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_begin_call(0, v_own);
    CALL imq_is_known(p_type, v_known);
    -- After pause_all the queue may have no row of its own.
    SELECT paused INTO v_all FROM mq_queue WHERE type = '';
    IF v_all THEN
        CALL imq_add_queue(p_type);
    END IF;
    UPDATE mq_queue SET paused = 0 WHERE type = p_type AND paused = 1;
    SET v_count = ROW_COUNT();
    CALL imq_end_call(v_own);
    SELECT v_count AS affected, v_known AS known;
END

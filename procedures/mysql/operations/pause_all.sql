-- pause_all: stop the claims of all queues, also of those that are first used later; see pause.
-- Arguments:   none
-- Returns:     changed: 1; 0 when all queues were already paused
-- Errors:      none
-- Transaction: joins the caller's; calls for one type wait for each other
-- Example:     CALL mq_pause_all();

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_pause_all()
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_own, v_changed tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_begin_call(0, v_own);
    -- The row with an empty type holds the defaults: it stands for the queues without settings of their own.
    UPDATE mq_queue SET paused = 1 WHERE paused = 0;
    SET v_changed = ROW_COUNT() > 0;
    CALL imq_end_call(v_own);
    SELECT v_changed AS changed;
END

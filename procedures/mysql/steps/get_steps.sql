-- get_steps: the steps that handlers of a message have saved, in this attempt and before it.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it)
-- Returns:     step, step_value, saved_at; in the order in which they were saved first
-- Errors:      50002 invalid_argument, 50008 lease_lost, 50011 cancelled
-- Transaction: joins the caller's; a call that finishes the message waits for it
-- Example:     CALL mq_get_steps(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_get_steps(
    IN p_id bigint,
    IN p_batch_key longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_lease_until datetime(6);
    DECLARE v_seconds int;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_begin_call(0, v_own);
    CALL imq_hold_message(p_id, p_batch_key, v_lease_until, v_seconds);
    SELECT s.step, s.step_value, s.saved_at FROM mq_step AS s WHERE s.id = p_id ORDER BY s.n, s.saved_at;
    CALL imq_end_call(v_own);
END

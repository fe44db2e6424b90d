-- snooze: put a claimed message back, due later: no attempt is counted, and its steps are kept; if it was
--     cancelled, delete it.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_seconds (0 to 315,360,000)
-- Returns:     affected: 1
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost (the batch key does not hold the message:
--              roll back)
-- Transaction: joins the caller's; in an ordered queue the message's group waits, as for a retry
-- Example:     CALL mq_snooze(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 3600);
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_snooze(
    IN p_id bigint,
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_seconds bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type, v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_attempt int;
    DECLARE v_dead bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF p_id IS NULL OR p_seconds IS NULL THEN
        CALL imq_raise_error('invalid_argument', CONCAT(IF(p_id IS NULL, 'id', 'seconds'), ': must not be NULL'));
    END IF;
    CALL imq_require_key(p_batch_key);
    CALL imq_require_range('seconds', p_seconds, 0, 315360000);
    CALL imq_begin_call(1, v_own);
    CALL imq_leave_batch(p_id, p_batch_key, v_type, v_attempt, v_consumer);
    -- As a failure that the message survives, because this attempt does not count.
    CALL imq_fail_messages(v_type, v_consumer, CONCAT('[[', p_id, ',', v_attempt - 1, ',', p_seconds, ',null]]'), v_dead);
    CALL imq_end_call(v_own);
    SELECT 1 AS affected;
END

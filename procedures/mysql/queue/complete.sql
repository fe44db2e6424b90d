-- complete: complete one claimed message: delete it, or archive it if the queue's policy is archive.
-- Arguments:   p_id, p_batch_key (the key that its claim returned)
-- Returns:     affected: 1
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost (the batch key does not hold the message:
--              roll back)
-- Transaction: joins the caller's, which must be READ COMMITTED
-- Example:     CALL mq_complete(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_complete(
    IN p_id bigint,
    IN p_batch_key longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type, v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_attempt int;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    CALL imq_require_key(p_batch_key);
    CALL imq_begin_call(1, v_own);
    CALL imq_leave_batch(p_id, p_batch_key, v_type, v_attempt, v_consumer);
    CALL imq_complete_messages(v_type, NULL, NULL, CONCAT('[[', p_id, ',', v_attempt, ']]'), v_consumer);
    CALL imq_end_call(v_own);
    SELECT 1 AS affected;
END

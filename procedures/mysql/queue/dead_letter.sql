-- dead_letter: record a failed attempt and dead-letter the message now: it can never succeed.
-- Arguments:   p_id, p_batch_key (the key that its claim returned), p_error (cut to 4,000 characters)
-- Returns:     state: E; NULL: it was cancelled, and is deleted
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost (the batch key does not hold the message:
--              roll back)
-- Transaction: joins the caller's, which must be READ COMMITTED
-- Example:     CALL mq_dead_letter(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 'no such mailbox');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_dead_letter(
    IN p_id bigint,
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_error longtext CHARACTER SET utf8mb4
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
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    CALL imq_require_key(p_batch_key);
    CALL imq_begin_call(1, v_own);
    CALL imq_leave_batch(p_id, p_batch_key, v_type, v_attempt, v_consumer);
    CALL imq_fail_messages(v_type, v_consumer,
        CONCAT('[[', p_id, ',', v_attempt, ',-1,', COALESCE(JSON_QUOTE(LEFT(p_error, 4000)), 'null'), ']]'), v_dead);
    CALL imq_end_call(v_own);
    SELECT IF(v_dead > 0, 'E', NULL) AS state;
END

-- fail: record a failed attempt: retry the message after a delay, or dead-letter it when its attempts are used up.
-- Arguments:   p_id, p_batch_key (the key that its claim returned), p_error (cut to 4,000 characters),
--              p_retry_after_seconds (0 to 315,360,000; NULL: the queue's backoff)
-- Returns:     state: N (will be retried) or E (dead letter); NULL: it was cancelled, and is deleted
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost (the batch key does not hold the message:
--              roll back)
-- Transaction: joins the caller's, which must be READ COMMITTED
-- Example:     CALL mq_fail(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 'connection refused', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_fail(
    IN p_id bigint,
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_error longtext CHARACTER SET utf8mb4,
    IN p_retry_after_seconds bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type, v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_attempt int;
    DECLARE v_dead bigint;
    DECLARE v_state char(1) CHARACTER SET ascii;
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
    CALL imq_require_range('retry_after_seconds', p_retry_after_seconds, 0, 315360000);
    CALL imq_begin_call(1, v_own);
    CALL imq_leave_batch(p_id, p_batch_key, v_type, v_attempt, v_consumer);
    CALL imq_fail_messages(v_type, v_consumer, CONCAT('[[', p_id, ',', v_attempt, ',',
        COALESCE(p_retry_after_seconds, 'null'), ',', COALESCE(JSON_QUOTE(LEFT(p_error, 4000)), 'null'), ']]'), v_dead);
    SELECT IF(v_dead > 0, 'E', MAX('N')) INTO v_state FROM mq_message WHERE id = p_id;
    CALL imq_end_call(v_own);
    SELECT v_state AS state;
END

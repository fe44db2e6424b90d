-- finish_messages: finish a part of a batch: the messages that the list names. The others stay claimed.
-- Arguments:   p_batch_key, p_outcomes (a JSON object per line; only the id: the message is done; error: it failed;
--              retry_after_seconds: when to retry it, without it the queue's backoff; dead: 1 dead-letters it; released: 1
--              gives it back without counting the attempt)
-- Returns:     affected: messages that the batch no longer holds
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost
-- Transaction: joins the caller's, which must be READ COMMITTED; calls for the same batch wait for each other
-- Example:     CALL mq_finish_messages('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"id":17}\n{"id":18,"released":1}');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_finish_messages(
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_outcomes longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type, v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_items, v_failed, v_released, v_done, v_left longtext CHARACTER SET utf8mb4;
    DECLARE v_dead, v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_key(p_batch_key);
    IF p_outcomes IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'outcomes: must not be NULL');
    END IF;
    CALL imq_begin_call(1, v_own);
    SELECT type, consumer, items INTO v_type, v_consumer, v_items FROM mq_batch WHERE batch_key = p_batch_key FOR UPDATE;
    IF v_items IS NULL THEN
        CALL imq_raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    END IF;
    CALL imq_read_outcomes(p_outcomes, v_items, 1, v_failed, v_released, v_done, v_left);
    SET v_count = JSON_LENGTH(v_items) - COALESCE(JSON_LENGTH(v_left), 0);
    IF v_left IS NULL THEN
        DELETE FROM mq_batch WHERE batch_key = p_batch_key;
    ELSEIF v_count > 0 THEN
        UPDATE mq_batch SET items = v_left WHERE batch_key = p_batch_key;
    END IF;
    IF v_failed IS NOT NULL THEN
        CALL imq_fail_messages(v_type, v_consumer, v_failed, v_dead);
    END IF;
    IF v_released IS NOT NULL THEN
        CALL imq_release_items(v_type, v_released);
    END IF;
    IF v_done IS NOT NULL THEN
        CALL imq_complete_messages(v_type, NULL, NULL, v_done, v_consumer);
    END IF;
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END

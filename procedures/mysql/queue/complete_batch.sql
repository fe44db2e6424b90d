-- complete_batch: complete all messages that the batch key still holds.
-- Arguments:   p_batch_key (the key that the claim returned)
-- Returns:     affected: messages completed
-- Errors:      50001 wrong_isolation, 50002 invalid_argument, 50008 lease_lost (the batch key holds nothing: roll back)
-- Transaction: joins the caller's, which must be READ COMMITTED
-- Example:     CALL mq_complete_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_complete_batch(IN p_batch_key longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type, v_consumer varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_key(p_batch_key);
    CALL imq_begin_call(1, v_own);
    SELECT type, consumer, items INTO v_type, v_consumer, v_items FROM mq_batch WHERE batch_key = p_batch_key FOR UPDATE;
    IF v_items IS NULL THEN
        CALL imq_raise_error('lease_lost',
            'batch_key: this batch was finished, released or rescued; roll back, do not retry, continue with the next claim');
    END IF;
    DELETE FROM mq_batch WHERE batch_key = p_batch_key;
    CALL imq_complete_messages(v_type, NULL, NULL, v_items, v_consumer);
    CALL imq_end_call(v_own);
    SELECT JSON_LENGTH(v_items) AS affected;
END

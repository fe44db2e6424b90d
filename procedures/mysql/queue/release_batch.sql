-- release_batch: release all messages that the batch key still holds: they are ready again, and the attempt does not count.
-- Arguments:   p_batch_key (the key that the claim returned)
-- Returns:     affected: messages released; 0 when the lease was lost
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; waits for a transaction that has saved a step
-- Example:     CALL mq_release_batch('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_release_batch(IN p_batch_key longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_key(p_batch_key);
    CALL imq_begin_call(1, v_own);
    SELECT type, items INTO v_type, v_items FROM mq_batch WHERE batch_key = p_batch_key FOR UPDATE;
    IF v_items IS NOT NULL THEN
        DELETE FROM mq_batch WHERE batch_key = p_batch_key;
        -- It locks the messages first: a handler's open transaction may have saved a step. Others would not see it, and do its
        -- work again.
        CALL imq_release_items(v_type, v_items);
    END IF;
    CALL imq_end_call(v_own);
    SELECT COALESCE(JSON_LENGTH(v_items), 0) AS affected;
END

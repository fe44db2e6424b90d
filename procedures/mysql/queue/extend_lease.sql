-- extend_lease: heartbeat: extend the lease of a batch to p_seconds from now.
-- Arguments:   p_batch_key, p_seconds (1 to 86,400; NULL: the lease_seconds of the claim)
-- Returns:     affected: messages that the batch still holds; 0 when the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     CALL mq_extend_lease('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 60);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_extend_lease(
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_seconds bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_key(p_batch_key);
    CALL imq_require_range('seconds', p_seconds, 1, 86400);
    CALL imq_begin_call(0, v_own);
    -- Lock the row first, then update it: an update of a row that this session has locked cannot deadlock.
    SELECT JSON_LENGTH(items) INTO v_count FROM mq_batch WHERE batch_key = p_batch_key FOR UPDATE;
    UPDATE mq_batch
    SET lease_until = UTC_TIMESTAMP(6) + INTERVAL COALESCE(p_seconds, lease_seconds) SECOND
    WHERE batch_key = p_batch_key;
    CALL imq_end_call(v_own);
    SELECT COALESCE(v_count, 0) AS affected;
END

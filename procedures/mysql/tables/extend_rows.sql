-- extend_rows: extend the lease of claimed rows: it ends p_seconds from now.
-- Arguments:   p_batch_key, p_seconds (1 to 86,400; NULL: the lease_seconds of the claim)
-- Returns:     affected: rows still held; 0 when the lease was lost
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     CALL mq_extend_rows('6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 60);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_extend_rows(
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_seconds bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_name varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_count bigint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;

    CALL imq_require_key(p_batch_key);
    CALL imq_require_range('seconds', p_seconds, 1, 86400);
    CALL imq_begin_call(0, v_own);
    SELECT MAX(b.name) INTO v_name
    FROM (SELECT name FROM mq_polled_batch WHERE batch_key = p_batch_key FOR UPDATE) AS b;
    IF v_name IS NOT NULL THEN
        UPDATE mq_polled_batch
        SET lease_until = UTC_TIMESTAMP(6) + INTERVAL COALESCE(p_seconds, lease_seconds) SECOND
        WHERE batch_key = p_batch_key;
        SELECT COUNT(*) INTO v_count FROM mq_polled_row WHERE batch_key = p_batch_key;
    END IF;
    SELECT v_count AS affected;
    CALL imq_end_call(v_own);
END

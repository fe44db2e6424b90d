-- set_result: store a result with a claimed message; it is kept with the archived message.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_result (up to 16 MiB)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument, 50008 lease_lost
-- Transaction: joins the caller's; calls for the same batch wait for each other
-- Example:     CALL mq_set_result(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"pages":3}');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_set_result(
    IN p_id bigint,
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_result longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_items longtext CHARACTER SET utf8mb4;
    DECLARE v_on_complete varchar(7) CHARACTER SET ascii;
    DECLARE v_held, v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    CALL imq_require_key(p_batch_key);
    IF p_result IS NULL OR LENGTH(p_result) > 16777216 THEN
        CALL imq_raise_error('invalid_argument', 'result: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    CALL imq_begin_call(0, v_own);
    SELECT MAX(b.type), MAX(b.items) INTO v_type, v_items
    FROM (SELECT type, items FROM mq_batch WHERE batch_key = p_batch_key FOR UPDATE) AS b;
    SELECT COUNT(*) INTO v_held
    FROM JSON_TABLE(COALESCE(v_items, '[]'), '$[*]' COLUMNS (id bigint PATH '$[0]')) AS j WHERE j.id = p_id;
    IF NOT v_held THEN
        CALL imq_raise_error('lease_lost', CONCAT('batch_key: does not hold message ', p_id, '; roll back, do not retry, continue with the next claim'));
    END IF;
    SELECT on_complete INTO v_on_complete FROM mq_queue WHERE type IN (v_type, '') ORDER BY type DESC LIMIT 1;
    IF v_on_complete <> 'archive' THEN
        CALL imq_raise_error('invalid_argument', 'id: the queue keeps no results; call set_queue with on_complete archive');
    END IF;
    INSERT INTO mq_result (id, result) VALUES (p_id, p_result) ON DUPLICATE KEY UPDATE mq_result.result = p_result;
    CALL imq_end_call(v_own);
    SELECT 1 AS affected;
END

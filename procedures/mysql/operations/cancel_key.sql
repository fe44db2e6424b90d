-- cancel_key: cancel the live message that has a dedup_key, as cancel does.
-- Arguments:   p_type, p_dedup_key (1 to 200 characters each)
-- Returns:     affected, state (as from cancel; NULL: no live message has the key), id (the message that has the key, or had it)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for a claim; waits for a call that is ending the
--              attempt, and for a transaction that has saved a step
-- Example:     CALL mq_cancel_key('reminder', 'order-17');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_cancel_key(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_dedup_key longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_id bigint;
    DECLARE v_count bigint DEFAULT 0;
    DECLARE v_state char(1) CHARACTER SET ascii;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_name('dedup_key', p_dedup_key, 0);
    CALL imq_begin_call(1, v_own);
    SELECT MAX(id) INTO v_id FROM mq_dedup WHERE type = p_type AND dedup_key = p_dedup_key;
    IF v_id IS NOT NULL THEN
        CALL imq_cancel_one(v_id, v_count, v_state);
    END IF;
    CALL imq_end_call(v_own);
    SELECT v_count AS affected, v_state AS state, v_id AS id;
END

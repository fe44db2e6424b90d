-- cancel: delete one new or dead message.
-- Arguments:   p_id (the message)
-- Returns:     count: 1; 0 when the message is active, is being claimed at this moment, or does not exist
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for a claim
-- Example:     CALL mq_cancel(17);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_cancel(IN p_id bigint)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_count bigint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    CALL imq_begin_call(1, v_own);
    SELECT MAX(type) INTO v_type FROM mq_message WHERE id = p_id;
    IF v_type IS NOT NULL THEN
        CALL imq_erase(v_type, CONCAT('[[', p_id, ']]'), 'NE', v_count);
    END IF;
    CALL imq_end_call(v_own);
    SELECT v_count AS count;
END

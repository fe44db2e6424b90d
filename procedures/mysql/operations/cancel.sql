-- cancel: delete one new or dead message, or cancel the attempt of an active one.
-- Arguments:   p_id (the message)
-- Returns:     affected (1; 0 when nothing changed), state (before the call: N or E: it is deleted; A: its handler learns it, and it is
--              deleted when the attempt ends; C: archived; N or E with affected 0: another transaction is claiming or changing
--              it; NULL: there is no such message)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for a claim; waits for a call that is ending the
--              attempt, and for a transaction that has saved a step
-- Example:     CALL mq_cancel(17);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_cancel(IN p_id bigint)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_count bigint;
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
    CALL imq_begin_call(1, v_own);
    CALL imq_cancel_one(p_id, v_count, v_state);
    CALL imq_end_call(v_own);
    SELECT v_count AS affected, v_state AS state;
END

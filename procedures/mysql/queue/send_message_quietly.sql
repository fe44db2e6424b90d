-- send_message_quietly: send one message with all options and return no rows: for triggers, and for ORMs inside a
--                       transaction.
-- Arguments:   as for send_message
-- Returns:     nothing; LAST_INSERT_ID() returns the id of the new message, or of the live message that has this type and
--              dedup_key
-- Errors:      50001 wrong_isolation (replace or postpone in an ordered queue or one with limits per group),
--              50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed a message with the same dedup_key
-- Example:     CALL mq_send_message_quietly('email', '{}', NULL, NULL, NULL, 'a-1', NULL, NULL, NULL, 3600, 'replace');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_send_message_quietly(
    IN p_type longtext CHARACTER SET utf8mb4, IN p_body longtext CHARACTER SET utf8mb4, IN p_run_at datetime(6),
    IN p_priority bigint, IN p_group_key longtext CHARACTER SET utf8mb4, IN p_dedup_key longtext CHARACTER SET utf8mb4,
    IN p_max_attempts bigint, IN p_headers longtext CHARACTER SET utf8mb4, IN p_source longtext CHARACTER SET utf8mb4,
    IN p_delay_seconds bigint, IN p_on_conflict longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_id bigint;
    DECLARE v_created, v_changed smallint;
    DECLARE v_trigger tinyint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_leave_call(v_own, 1);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_message(p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers, p_source,
        p_delay_seconds, p_on_conflict);
    /*M! BEGIN
        DECLARE EXIT HANDLER FOR 1422 SET v_trigger = 1;
        CALL imq_outside_trigger();
    END; */
    CALL imq_join_call(v_trigger, v_own);
    IF v_own = 1 THEN
        CALL imq_begin_call(0, v_own);
    END IF;
    CALL imq_send_one(p_type, p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers,
        p_source, p_delay_seconds, p_on_conflict, IF(v_own = 1, 1, 2), v_id, v_created, v_changed);
    CALL imq_leave_call(v_own, 0);
    DO LAST_INSERT_ID(v_id);
END

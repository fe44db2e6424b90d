-- send_quietly: send one message and return no rows: for triggers, and for ORMs inside a transaction.
-- Arguments:   p_type, p_body, p_options: as for send_with
-- Returns:     nothing; LAST_INSERT_ID() returns the id of the new message, or of the live message that has this type and
--              dedup_key
-- Errors:      50001 wrong_isolation (replace or postpone in an ordered queue or one with limits per group),
--              50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed a message with the same dedup_key
-- Example:     CALL mq_send_quietly('email', '{"to":"ada@example.org"}', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_send_quietly(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_body longtext CHARACTER SET utf8mb4,
    IN p_options longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_run_at datetime(6);
    DECLARE v_priority, v_max_attempts, v_delay_seconds, v_id bigint;
    DECLARE v_group_key, v_dedup_key, v_headers, v_source, v_on_conflict longtext CHARACTER SET utf8mb4;
    DECLARE v_created, v_changed smallint;
    DECLARE v_trigger tinyint DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_leave_call(v_own, 1);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_send_options(p_options, 0, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers, v_source,
        v_delay_seconds, v_on_conflict);
    CALL imq_require_message(p_body, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers, v_source,
        v_delay_seconds, v_on_conflict);
    /*M! BEGIN
        DECLARE EXIT HANDLER FOR 1422 SET v_trigger = 1;
        CALL imq_outside_trigger();
    END; */
    CALL imq_join_call(v_trigger, v_own);
    IF v_own = 1 THEN
        CALL imq_begin_call(0, v_own);
    END IF;
    CALL imq_send_one(p_type, p_body, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers,
        v_source, v_delay_seconds, v_on_conflict, IF(v_own = 1, 1, 2), v_id, v_created, v_changed);
    CALL imq_leave_call(v_own, 0);
    DO LAST_INSERT_ID(v_id);
END

-- send_message: send one message with all options.
-- Arguments:   p_type, p_body (up to 16 MiB), p_run_at (UTC, 1970 to ten years ahead; NULL: now), p_priority (-32,768 to
--              32,767, smaller first; NULL: 0), p_group_key, p_dedup_key, p_max_attempts (1 to 1,000; NULL: the queue's),
--              p_headers (up to 64 KiB), p_source (NULL: the application name), p_delay_seconds (0 to 315,360,000, instead
--              of p_run_at), p_on_conflict (keep, replace or postpone a live message that has the same dedup_key; NULL:
--              keep); names and keys have 1 to 200 characters
-- Returns:     id; created (1: new; 0: id is the live message that has this type and dedup_key); changed (1: that message
--              was replaced or postponed); state (of the message: N; A or E only if created is 0)
-- Errors:      50001 wrong_isolation (replace or postpone in an ordered queue or one with limits per group),
--              50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed a message with the same dedup_key
-- Example:     CALL mq_send_message('email', '{}', NULL, NULL, NULL, 'a-1', NULL, NULL, NULL, 3600, 'replace');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_send_message(
    IN p_type longtext CHARACTER SET utf8mb4, IN p_body longtext CHARACTER SET utf8mb4, IN p_run_at datetime(6),
    IN p_priority bigint, IN p_group_key longtext CHARACTER SET utf8mb4, IN p_dedup_key longtext CHARACTER SET utf8mb4,
    IN p_max_attempts bigint, IN p_headers longtext CHARACTER SET utf8mb4, IN p_source longtext CHARACTER SET utf8mb4,
    IN p_delay_seconds bigint, IN p_on_conflict longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_id bigint;
    DECLARE v_created, v_changed smallint;
    DECLARE v_state char(1) CHARACTER SET ascii DEFAULT 'N';
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    CALL imq_require_message(p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers, p_source,
        p_delay_seconds, p_on_conflict);
    CALL imq_begin_call(0, v_own);
    CALL imq_send_one(p_type, p_body, p_run_at, p_priority, p_group_key, p_dedup_key, p_max_attempts, p_headers,
        p_source, p_delay_seconds, p_on_conflict, v_own, v_id, v_created, v_changed);
    IF v_created + v_changed = 0 THEN
        CALL imq_state_of(v_id, v_state);
    END IF;
    CALL imq_end_call(v_own);
    -- A snapshot that is older than the message does not show its state.
    SELECT v_id AS id, v_created AS created, v_changed AS changed, COALESCE(v_state, 'N') AS state;
END

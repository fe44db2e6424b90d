-- send_with: send one message with options, which are a JSON object.
-- Arguments:   p_type, p_body (up to 16 MiB), p_options (a flat JSON object): run_at (a time with its zone, from 1970 to ten
--              years ahead; default now), delay_seconds (0 to 315,360,000, instead of run_at), priority (-32,768 to 32,767,
--              smaller first; 0), group_key, dedup_key, on_conflict (keep, replace or postpone a live message that has the
--              same dedup_key; keep), max_attempts (1 to 1,000; the queue's), headers (a text of up to 64 KiB), source (the
--              application name); names and keys have 1 to 200 characters
-- Returns:     as send_message
-- Errors:      50001 wrong_isolation (replace or postpone in an ordered queue or one with limits per group),
--              50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed a message with the same dedup_key
-- Example:     CALL mq_send_with('email', '{}', '{"dedup_key": "a-1", "delay_seconds": 60}');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_send_with(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_body longtext CHARACTER SET utf8mb4,
    IN p_options longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_run_at datetime(6);
    DECLARE v_priority, v_max_attempts, v_delay_seconds bigint;
    DECLARE v_group_key, v_dedup_key, v_headers, v_source, v_on_conflict longtext CHARACTER SET utf8mb4;
    -- It restores what read_options has set in the session.
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(NULL);
        RESIGNAL;
    END;
    CALL imq_send_options(p_options, 0, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers, v_source,
        v_delay_seconds, v_on_conflict);
    CALL mq_send_message(p_type, p_body, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers, v_source,
        v_delay_seconds, v_on_conflict);
END

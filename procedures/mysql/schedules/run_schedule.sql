-- run_schedule: send a schedule's message once now, in addition to its regular times.
-- Arguments:   p_name (1 to 200 characters)
-- Returns:     id: the new message
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; the schedule's regular times wait until it ends
-- Example:     CALL mq_run_schedule('nightly');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_run_schedule(IN p_name longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_count, v_id bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('name', p_name, 0);
    CALL imq_begin_call(0, v_own);
    SELECT COUNT(*) INTO v_count FROM mq_schedule WHERE name = p_name FOR UPDATE;
    IF v_count = 0 THEN
        CALL imq_raise_error('not_found', CONCAT('name: there is no schedule ', LEFT(p_name, 60)));
    END IF;
    CALL imq_send_occurrence(p_name, UTC_TIMESTAMP(6), v_id);
    CALL imq_end_call(v_own);
    SELECT v_id AS id;
END

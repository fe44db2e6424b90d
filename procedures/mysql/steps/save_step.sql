-- save_step: keep what a step of a message's handler has done; the same step again replaces its value.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_step (1 to 200 characters), p_value (up to
--              16 MiB; NULL: the step has no value)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument (10,000 steps a message), 50008 lease_lost, 50011 cancelled (nothing is
--              saved)
-- Transaction: joins the caller's: what the step did in this database commits together with its record. A call that finishes
--              the message waits for it; a lease of which less than half is left is extended
-- Example:     CALL mq_save_step(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 'charge', '{"charge":"ch_1"}');
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_save_step(
    IN p_id bigint,
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_step longtext CHARACTER SET utf8mb4,
    IN p_value longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE c_most int DEFAULT 10000;
    DECLARE v_lease_until datetime(6);
    DECLARE v_seconds, v_count int;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('step', p_step, 0);
    IF LENGTH(p_value) > 16777216 THEN
        CALL imq_raise_error('invalid_argument', 'value: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    CALL imq_begin_call(0, v_own);
    CALL imq_hold_message(p_id, p_batch_key, v_lease_until, v_seconds);
    -- The message's lock keeps others away from its steps.
    UPDATE mq_step SET step_value = p_value, saved_at = UTC_TIMESTAMP(6) WHERE id = p_id AND step = p_step;
    IF ROW_COUNT() = 0 THEN
        SELECT COUNT(*) INTO v_count FROM (SELECT 1 FROM mq_step WHERE id = p_id LIMIT 10000) AS s;
        IF v_count = c_most THEN
            CALL imq_raise_error('invalid_argument', 'step: a message has at most 10,000 steps');
        END IF;
        INSERT INTO mq_step (id, n, saved_at, step, step_value)
        SELECT p_id, v_count, UTC_TIMESTAMP(6), p_step, p_value
        ON DUPLICATE KEY UPDATE mq_step.step_value = p_value, mq_step.saved_at = UTC_TIMESTAMP(6);
    END IF;
    -- Not at each step: a heartbeat waits for a transaction that has extended the lease.
    IF v_lease_until < UTC_TIMESTAMP(6) + INTERVAL v_seconds * 500000 MICROSECOND THEN
        UPDATE mq_batch SET lease_until = UTC_TIMESTAMP(6) + INTERVAL lease_seconds SECOND WHERE batch_key = p_batch_key;
    END IF;
    CALL imq_end_call(v_own);
    SELECT 1 AS affected;
END

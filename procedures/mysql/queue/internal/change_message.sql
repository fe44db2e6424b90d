-- change_message: replace or postpone a live message that has the dedup_key, if its state is N.
-- Arguments:   p_type, p_grouped (the policy), p_ring, p_fair, p_id, p_on_conflict (replace or postpone),
--              p_now (when the call began), p_run_at, p_priority, p_body, p_headers (as in the call), p_fresh (0: the
--              snapshot may be older than the call)
-- Returns:     p_changed: 1; 0 when nothing was changed: its state is not N, another transaction is claiming it, or it is
--              due later already
-- Transaction: joins the caller's, which has locked the key; never waits for a claim
--
-- The message is removed from its position as cancel does it. Then it is inserted where a new message with this run_at
-- goes (enter_place). In a grouped queue it no longer blocks its group.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_change_message(
    IN p_type varchar(200) CHARACTER SET utf8mb4, IN p_grouped tinyint, IN p_ring tinyint, IN p_fair tinyint,
    IN p_id bigint, IN p_on_conflict varchar(8) CHARACTER SET utf8mb4, IN p_now datetime(6), IN p_run_at datetime(6),
    IN p_priority smallint, IN p_body longtext CHARACTER SET utf8mb4, IN p_headers longtext CHARACTER SET utf8mb4,
    IN p_fresh tinyint, OUT p_changed smallint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
whole: BEGIN
    DECLARE v_replace tinyint DEFAULT p_on_conflict = 'replace';
    DECLARE v_group varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_priority, v_attempts smallint;
    DECLARE v_run_at datetime(6);
    DECLARE v_error text CHARACTER SET utf8mb4;
    SET p_changed = 0;
    IF p_fresh THEN
        -- Read without a lock: a session that finishes the message has locked it and may be waiting for its key.
        SELECT MAX(priority), MAX(run_at), MAX(COALESCE(group_key, '')) INTO v_priority, v_run_at, v_group
        FROM mq_message FORCE INDEX (PRIMARY) WHERE id = p_id;
    ELSE
        SELECT MAX(m.priority), MAX(m.run_at), MAX(m.group_key) INTO v_priority, v_run_at, v_group
        FROM (
            SELECT priority, run_at, COALESCE(group_key, '') AS group_key FROM mq_message WHERE id = p_id FOR UPDATE SKIP LOCKED
        ) AS m;
    END IF;
    IF v_run_at IS NOT NULL AND (v_replace OR p_run_at > v_run_at) THEN
        CALL imq_leave_place(p_type, p_grouped, p_id, v_group, v_priority, v_run_at, v_attempts, v_error);
    END IF;
    IF v_attempts IS NULL THEN
        LEAVE whole;
    END IF;

    IF v_replace THEN
        UPDATE mq_message SET run_at = p_run_at, sent_run_at = NULL, priority = p_priority, body = p_body, headers = p_headers
        WHERE id = p_id;
        DELETE FROM mq_step WHERE id = p_id;
        SET v_priority = p_priority, v_attempts = 0, v_error = NULL;
    ELSE
        UPDATE mq_message SET run_at = p_run_at, sent_run_at = NULL WHERE id = p_id;
    END IF;
    CALL imq_enter_place(p_type, p_grouped, p_ring, p_fair, p_id, v_group, v_priority, p_now, p_run_at, v_attempts, v_error, 1);
    SET p_changed = 1;
END

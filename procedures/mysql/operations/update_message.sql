-- update_message: change a message before it is claimed.
-- Arguments:   p_id (the message), p_options (a flat JSON object; at least one of them): body (up to 16 MiB), run_at (a time
--              with its zone, from 1970 to ten years ahead; null: now), delay_seconds (0 to 315,360,000, instead of run_at;
--              null: now), priority (-32,768 to 32,767; null: 0), max_attempts (1 to 1,000; null: the queue's), headers (a
--              text of up to 64 KiB; null: none)
-- Returns:     affected (1; 0 when it was not changed), state (N if it was changed; otherwise A: active, E: dead, C:
--              archived, N: another transaction is claiming or changing it; NULL: there is no such message)
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for a claim
-- Example:     CALL mq_update_message(17, '{"priority": -1, "run_at": null}');
--
-- The message keeps its attempts and its last error. A message that waits for its retry continues to wait if it gets no new
-- time, and still blocks its group in an ordered queue.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_update_message(
    IN p_id bigint,
    IN p_options longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_read, v_body, v_headers longtext CHARACTER SET utf8mb4;
    DECLARE v_run_at, v_new_run_at datetime(6);
    DECLARE v_new_priority, v_max_attempts, v_delay_seconds bigint;
    DECLARE v_has_body, v_has_time, v_has_priority, v_has_attempts, v_has_headers, v_grouped, v_ring, v_fair, v_own tinyint;
    DECLARE v_type, v_group varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_priority, v_attempts smallint;
    DECLARE v_error text CHARACTER SET utf8mb4;
    DECLARE v_state char(1) CHARACTER SET ascii DEFAULT 'N';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL');
    END IF;
    CALL imq_read_options(p_options, 'options', '{"body": "text", "run_at": "time", "delay_seconds": [0, 315360000],
        "priority": [-32768, 32767], "max_attempts": [1, 1000], "headers": "text"}', NULL, v_read);
    IF JSON_LENGTH(v_read) = 0 THEN
        CALL imq_raise_error('invalid_argument',
            'options: must have one of body, run_at, delay_seconds, priority, max_attempts and headers');
    END IF;
    SELECT j.body, j.run_at, j.delay_seconds, j.priority, j.max_attempts, j.headers, j.has_body, j.has_run_at OR j.has_delay,
        j.has_priority, j.has_attempts, j.has_headers
    INTO v_body, v_new_run_at, v_delay_seconds, v_new_priority, v_max_attempts, v_headers, v_has_body, v_has_time, v_has_priority,
        v_has_attempts, v_has_headers
    FROM JSON_TABLE(v_read, '$' COLUMNS (body longtext CHARACTER SET utf8mb4 PATH '$.body', run_at varchar(30) PATH '$.run_at',
        delay_seconds int PATH '$.delay_seconds', priority int PATH '$.priority', max_attempts int PATH '$.max_attempts',
        headers longtext CHARACTER SET utf8mb4 PATH '$.headers', has_body tinyint EXISTS PATH '$.body',
        has_run_at tinyint EXISTS PATH '$.run_at', has_delay tinyint EXISTS PATH '$.delay_seconds',
        has_priority tinyint EXISTS PATH '$.priority', has_attempts tinyint EXISTS PATH '$.max_attempts',
        has_headers tinyint EXISTS PATH '$.headers')) AS j;
    CALL imq_require_message(IF(v_has_body, v_body, ''), v_new_run_at, v_new_priority, NULL, NULL, v_max_attempts, v_headers, NULL,
        v_delay_seconds, NULL);

    CALL imq_begin_call(1, v_own);
    SELECT MAX(type), MAX(COALESCE(group_key, '')), MAX(priority), MAX(run_at) INTO v_type, v_group, v_priority, v_run_at
    FROM mq_message FORCE INDEX (PRIMARY) WHERE id = p_id;
    IF v_type IS NOT NULL THEN
        SELECT grouped, ring, fair INTO v_grouped, v_ring, v_fair
        FROM mq_queue WHERE type IN (v_type, '') ORDER BY type DESC LIMIT 1;
        CALL imq_leave_place(v_type, v_grouped, p_id, v_group, v_priority, v_run_at, v_attempts, v_error);
    END IF;
    IF v_attempts IS NULL THEN
        CALL imq_state_of(p_id, v_state);
    ELSE
        UPDATE mq_message
        SET sent_run_at = IF(v_has_time, NULL, sent_run_at),
            run_at = IF(v_has_time, COALESCE(v_new_run_at, v_now + INTERVAL v_delay_seconds SECOND, v_now), run_at),
            priority = IF(v_has_priority, COALESCE(v_new_priority, 0), priority),
            max_attempts = IF(v_has_attempts, v_max_attempts, max_attempts), body = IF(v_has_body, v_body, body),
            headers = IF(v_has_headers, v_headers, headers)
        WHERE id = p_id;
        -- Read again: another call may have changed the priority before leave_place locked the message.
        SELECT priority, run_at INTO v_priority, v_run_at FROM mq_message FORCE INDEX (PRIMARY) WHERE id = p_id;
        CALL imq_enter_place(v_type, v_grouped, v_ring, v_fair, p_id, v_group, v_priority, v_now, v_run_at, v_attempts, v_error,
            v_has_time OR v_run_at <= v_now);
    END IF;
    CALL imq_end_call(v_own);
    SELECT CAST(v_attempts IS NOT NULL AS signed) AS affected, v_state AS state;
END

-- send: send one message that is ready now.
-- Arguments:   p_type (1 to 200 characters), p_body (up to 16 MiB)
-- Returns:     id of the message
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; the message can be claimed when it commits
-- Example:     CALL mq_send('email', '{"to":"ada@example.org"}');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_send(
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_body longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_now datetime(6) DEFAULT UTC_TIMESTAMP(6);
    DECLARE v_grouped, v_ring, v_fair, v_own tinyint;
    DECLARE v_source varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_id bigint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('type', p_type, 0);
    IF p_body IS NULL OR LENGTH(p_body) > 16777216 THEN
        CALL imq_raise_error('invalid_argument', 'body: must be a text of up to 16 MiB (16,777,216 bytes)');
    END IF;
    CALL imq_begin_call(0, v_own);
    SELECT grouped, ring, fair INTO v_grouped, v_ring, v_fair FROM mq_queue WHERE type IN (p_type, '') ORDER BY type DESC LIMIT 1;
    CALL imq_consumer_name(NULL, v_source);
    INSERT INTO mq_message (run_at, created_at, priority, type, body, source)
    VALUES (v_now, v_now, 0, p_type, p_body, v_source);
    SET v_id = LAST_INSERT_ID();
    IF v_grouped THEN
        INSERT INTO mq_grouped (type, group_key, id, attempts) VALUES (p_type, '', v_id, 0);
    END IF;
    INSERT INTO mq_ready (type, priority, run_at, id, attempts)
    VALUES (p_type, IF(v_ring, -32768, 0), IF(v_ring OR v_fair AND NOT v_grouped, '1000-01-01', v_now), v_id, 0);
    CALL imq_end_call(v_own);
    SELECT v_id AS id;
END

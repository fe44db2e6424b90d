-- publish_with: send one message with options to each type that is bound to the topic.
-- Arguments:   p_topic (words separated by dots, 1 to 200 characters), p_body (up to 16 MiB), p_options (as for send_with;
--              headers are a JSON object, up to 64 KiB with the topic in it)
-- Returns:     affected: messages sent; a type with a live message of this dedup_key is not counted
-- Errors:      50001 wrong_isolation (replace or postpone in an ordered queue or one with limits per group),
--              50002 invalid_argument
-- Transaction: joins the caller's; waits for an open transaction that has sent or changed the same dedup_key
-- Example:     CALL mq_publish_with('orders.eu.paid', '{"order":17}', '{"delay_seconds": 60}');
--
-- In the order of their names: two publishers with the same dedup_key lock in the same order and do not deadlock.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_publish_with(
    IN p_topic longtext CHARACTER SET utf8mb4,
    IN p_body longtext CHARACTER SET utf8mb4,
    IN p_options longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_run_at datetime(6);
    DECLARE v_priority, v_max_attempts, v_delay_seconds bigint;
    DECLARE v_group_key, v_dedup_key, v_headers, v_source, v_on_conflict longtext CHARACTER SET utf8mb4;
    DECLARE v_path text CHARACTER SET ascii;
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_id bigint;
    DECLARE v_created, v_changed smallint;
    DECLARE v_count bigint DEFAULT 0;
    DECLARE v_done, v_own tinyint DEFAULT 0;
    DECLARE bound CURSOR FOR
        SELECT b.type FROM mq_binding AS b FORCE INDEX (PRIMARY) WHERE b.pattern = p_topic
        UNION
        SELECT b.type FROM mq_binding AS b FORCE INDEX (binding_wild) WHERE b.wild = 1 AND v_path LIKE b.path
        ORDER BY 1;
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_done = 1;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    SET v_own = NULL;
    CALL imq_require_topic('topic', p_topic, 0);
    CALL imq_send_options(p_options, 0, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers, v_source,
        v_delay_seconds, v_on_conflict);
    IF LEFT(v_headers, 1) <> '{' OR RIGHT(v_headers, 1) <> '}' OR CHAR_LENGTH(v_headers) < 2 THEN
        CALL imq_raise_error('invalid_argument', 'headers: must be a JSON object with unique names');
    END IF;
    -- A topic contains no character that JSON would escape.
    SET v_headers = CONCAT('{"topic":"', p_topic, '"',
        IF(COALESCE(v_headers, '{}') REGEXP '^[{][[:space:]]*[}]$', '}', CONCAT(',', SUBSTRING(v_headers, 2))));
    -- Checked even if no type is bound.
    CALL imq_require_message(p_body, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers, v_source,
        v_delay_seconds, v_on_conflict);
    CALL imq_begin_call(0, v_own);
    CALL imq_topic_path(p_topic, v_path);
    OPEN bound;
    types: LOOP
        SET v_done = 0;
        FETCH bound INTO v_type;
        IF v_done THEN
            LEAVE types;
        END IF;
        CALL imq_send_one(v_type, p_body, v_run_at, v_priority, v_group_key, v_dedup_key, v_max_attempts, v_headers, v_source,
            v_delay_seconds, v_on_conflict, v_own, v_id, v_created, v_changed);
        SET v_count = v_count + v_created;
    END LOOP;
    CLOSE bound;
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END

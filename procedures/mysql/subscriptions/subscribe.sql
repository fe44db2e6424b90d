-- subscribe: from now on, send a message to a type or topic for each changed row of a table.
-- Arguments:   p_table (a watched table), p_action (I, U or D, or several of them), and either p_type (1 to 200 characters)
--              or p_topic (each type bound to it at the time of the change gets one message)
-- Returns:     affected: new subscriptions
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table
-- Transaction: joins the caller's; changes written after its commit are sent
-- Example:     CALL mq_subscribe('stock', 'IU', 'stock.changed', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_subscribe(
    IN p_table longtext CHARACTER SET utf8mb4,
    IN p_action longtext CHARACTER SET utf8mb4,
    IN p_type longtext CHARACTER SET utf8mb4,
    IN p_topic longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_label, v_quoted longtext CHARACTER SET utf8mb4;
    DECLARE v_path text CHARACTER SET ascii DEFAULT '';
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_actions(p_action, 0);
    IF (p_type IS NULL) = (p_topic IS NULL) THEN
        CALL imq_raise_error('invalid_argument', 'type: give either a type or a topic');
    END IF;
    CALL imq_require_name('type', p_type, 1);
    IF p_topic IS NOT NULL THEN
        CALL imq_require_topic('topic', p_topic, 0);
        CALL imq_topic_path(p_topic, v_path);
    END IF;
    CALL imq_begin_call(0, v_own);
    -- The messages contain keys of the rows that change.
    CALL imq_find_watched(p_table, 'Select', v_label, v_quoted);
    IF v_quoted IS NULL THEN
        CALL imq_raise_error('not_found', CONCAT('table: there is no table ', LEFT(v_label, 60), ' any more'));
    END IF;
    -- No other session can unwatch the table until the commit. A foreign key would do the same, but needs the right REFERENCES.
    SELECT COUNT(*) INTO v_count FROM mq_watched WHERE label = v_label FOR UPDATE;
    IF v_count = 0 THEN
        CALL imq_raise_error('not_found', CONCAT('table: ', LEFT(v_label, 60), ' is not watched: call watch_table first'));
    END IF;
    -- IGNORE: with some drivers ON DUPLICATE KEY also counts existing rows.
    INSERT IGNORE INTO mq_subscription (label, action, type, topic, path)
    SELECT v_label, a.action, COALESCE(p_type, ''), COALESCE(p_topic, ''), v_path
    FROM (SELECT 'I' AS action UNION ALL SELECT 'U' UNION ALL SELECT 'D') AS a WHERE LOCATE(a.action, p_action) > 0;
    SET v_count = ROW_COUNT();
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END

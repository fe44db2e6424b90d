-- list_subscriptions: list the watched tables, and the types or topics that their changes are sent to.
-- Arguments:   p_table (a watched table; NULL: all)
-- Returns:     table_name, action, type, topic (type or topic: NULL): one row per subscription; a table without any has one row
--              with NULLs
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: reads only
-- Example:     CALL mq_list_subscriptions(NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_subscriptions(IN p_table longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_label, v_quoted longtext CHARACTER SET utf8mb4;
    IF p_table IS NOT NULL THEN
        CALL imq_find_watched(p_table, NULL, v_label, v_quoted);
    END IF;
    SELECT w.label AS table_name, s.action, NULLIF(s.type, '') AS type, NULLIF(s.topic, '') AS topic
    FROM mq_watched AS w
    LEFT JOIN mq_subscription AS s ON s.label = w.label
    WHERE v_label IS NULL OR w.label = v_label
    ORDER BY w.label, LOCATE(s.action, 'IUD'), s.type, s.topic;
END

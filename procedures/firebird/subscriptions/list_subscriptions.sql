-- list_subscriptions: list the watched tables, and the types or topics that their changes are sent to.
-- Arguments:   p_table (a watched table; NULL: all)
-- Returns:     table_name, action, type, topic (type or topic: NULL): one row per subscription; a table without any has one row
--              with NULLs
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: reads only
-- Example:     SELECT table_name, action, type, topic FROM mq_list_subscriptions;

CREATE OR ALTER PROCEDURE mq_list_subscriptions (
    p_table mq_text = NULL
)
RETURNS (table_name mq_name, action varchar(1) CHARACTER SET UTF8, type mq_name, topic mq_name)
AS
DECLARE v_watched integer;
BEGIN
    IF (p_table IS NOT NULL) THEN
        SELECT w.id FROM imq_find_watched(:p_table) AS w INTO v_watched;
    FOR
        SELECT w.label, s.action, NULLIF(s.type, ''), NULLIF(s.topic, '')
        FROM mq_watched AS w
        LEFT JOIN mq_subscription AS s ON s.watched = w.id
        WHERE :v_watched IS NULL OR w.id = :v_watched
        ORDER BY w.label, POSITION(s.action IN 'IUD'), s.type, s.topic
        INTO table_name, action, type, topic
    DO
        SUSPEND;
END

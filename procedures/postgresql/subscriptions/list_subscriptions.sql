-- list_subscriptions: list the watched tables, and the types or topics that their changes are sent to.
-- Arguments:   p_table (a watched table; NULL: all)
-- Returns:     table_name, action, type, topic (type or topic: NULL): one row per subscription; a table without any has one row
--              with NULLs
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: reads only
-- Example:     SELECT * FROM mq.list_subscriptions();
CREATE OR REPLACE FUNCTION mq.list_subscriptions(p_table text DEFAULT NULL) RETURNS TABLE (
    table_name text,
    action text,
    type text,
    topic text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
DECLARE
    v_label text;
BEGIN
    IF p_table IS NOT NULL THEN
        SELECT w.label INTO v_label FROM mq_internal.find_watched(p_table) AS w;
    END IF;
    RETURN QUERY
        SELECT w.label, s.action, nullif(s.type, ''), nullif(s.topic, '')
        FROM mq.watched AS w
        LEFT JOIN mq.subscription AS s ON s.label = w.label
        WHERE v_label IS NULL OR w.label = v_label
        ORDER BY w.label, strpos('IUD', s.action), s.type, s.topic;
END
$$;

-- unsubscribe: delete subscriptions of a table.
-- Arguments:   p_table (a watched table), p_action (I, U or D, or several of them; NULL: all), p_type or p_topic (both NULL:
--              all)
-- Returns:     count: subscriptions deleted
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; messages that were sent stay
-- Example:     SELECT mq.unsubscribe('stock', NULL, 'stock.changed');

CREATE OR REPLACE FUNCTION mq.unsubscribe(
    p_table text,
    p_action text DEFAULT NULL,
    p_type text DEFAULT NULL,
    p_topic text DEFAULT NULL,
    OUT count bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
BEGIN
    PERFORM mq.require_actions(p_action, true);
    IF p_type IS NOT NULL AND p_topic IS NOT NULL THEN
        PERFORM mq.raise_error('invalid_argument', 'type: give either a type or a topic');
    END IF;
    PERFORM mq.require_name('type', p_type, true);
    PERFORM mq.require_name('topic', p_topic, true);
    DELETE FROM mq.subscription AS s
    USING mq.find_watched(p_table) AS w
    WHERE s.label = w.label AND (p_action IS NULL OR strpos(p_action, s.action) > 0)
        AND (p_type IS NULL OR s.type = p_type) AND (p_topic IS NULL OR s.topic = p_topic);
    GET DIAGNOSTICS count = ROW_COUNT;
END
$$;

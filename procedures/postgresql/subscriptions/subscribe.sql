-- subscribe: from now on, send a message to a type or topic for each changed row of a table.
-- Arguments:   p_table (a watched table), p_action (I, U or D, or several of them), and either p_type (1 to 200 characters)
--              or p_topic (each type bound to it at the time of the change gets one message)
-- Returns:     count: new subscriptions
-- Errors:      50002 invalid_argument, 50005 not_found
-- Transaction: joins the caller's; changes written after its commit are sent
-- Example:     SELECT mq.subscribe('stock', 'IU', 'stock.changed');

CREATE OR REPLACE FUNCTION mq.subscribe(
    p_table text,
    p_action text,
    p_type text DEFAULT NULL,
    p_topic text DEFAULT NULL,
    OUT count bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
BEGIN
    PERFORM mq.require_actions(p_action, false);
    IF (p_type IS NULL) = (p_topic IS NULL) THEN
        PERFORM mq.raise_error('invalid_argument', 'type: give either a type or a topic');
    END IF;
    PERFORM mq.require_name('type', p_type, true);
    IF p_topic IS NOT NULL THEN
        PERFORM mq.require_topic('topic', p_topic, false);
    END IF;
    INSERT INTO mq.subscription (label, action, type, topic)
    SELECT w.label, a.action, coalesce(p_type, ''), coalesce(p_topic, '')
    FROM mq.find_watched(p_table) AS w, regexp_split_to_table(p_action, '') AS a (action)
    ORDER BY a.action
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS count = ROW_COUNT;
END
$$;

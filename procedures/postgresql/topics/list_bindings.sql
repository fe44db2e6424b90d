-- list_bindings: list all bindings, or those whose pattern matches a topic.
-- Arguments:   p_topic (words separated by dots; NULL: all bindings)
-- Returns:     pattern, type: one row per binding, in this order
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq.list_bindings('orders.eu.paid');
CREATE OR REPLACE FUNCTION mq.list_bindings(p_topic text DEFAULT NULL) RETURNS TABLE (
    pattern text,
    type text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF p_topic IS NULL THEN
        RETURN QUERY SELECT b.pattern, b.type FROM mq.binding AS b ORDER BY b.pattern, b.type;
    ELSE
        PERFORM mq_internal.require_topic('topic', p_topic, false);
        RETURN QUERY
            SELECT b.pattern, b.type
            FROM mq_internal.matching_bindings(p_topic) AS b
            ORDER BY b.pattern COLLATE "C", b.type COLLATE "C";
    END IF;
END
$$;

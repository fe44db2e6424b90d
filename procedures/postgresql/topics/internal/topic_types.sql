-- topic_types: the types that are bound to a topic.
-- Arguments:   p_topic
-- Returns:     type: each type once, ordered by name
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT * FROM mq.topic_types('orders.eu.paid');

CREATE OR REPLACE FUNCTION mq.topic_types(
    p_topic text
) RETURNS SETOF text
LANGUAGE sql
STABLE
AS $$
    SELECT b.type COLLATE "C" FROM mq.matching_bindings(p_topic) AS b GROUP BY 1 ORDER BY 1
$$;

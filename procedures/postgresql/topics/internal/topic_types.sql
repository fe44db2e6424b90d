-- topic_types: the types that are bound to a topic.
CREATE OR REPLACE FUNCTION mq_internal.topic_types(p_topic text) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT b.type COLLATE "C" FROM mq_internal.matching_bindings(p_topic) AS b GROUP BY 1 ORDER BY 1
$$;

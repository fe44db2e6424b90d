-- matching_bindings: the bindings whose pattern matches a topic.
--
-- LIKE excludes most patterns at little cost. With a dot on both sides of every word, % matches whole words, which is
-- exact for #. For * it may match too many words, and topic_matches decides.
CREATE OR REPLACE FUNCTION mq_internal.matching_bindings(p_topic text) RETURNS TABLE (pattern text, type text)
LANGUAGE sql STABLE AS $$
    SELECT b.pattern, b.type
    FROM mq.binding AS b
    WHERE '.' || replace(p_topic, '.', '..') || '.' LIKE b.like_pattern
        AND (strpos(b.pattern, '*') = 0 OR mq_internal.topic_matches(b.pattern, p_topic))
$$;

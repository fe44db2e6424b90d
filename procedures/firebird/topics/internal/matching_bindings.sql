-- matching_bindings: the bindings whose pattern matches a topic.
-- Returns:     pattern and type
--
-- LIKE excludes most patterns at little cost. With a dot on both sides of every word, % matches whole words, which is
-- exact for #. For * it may match too many words, and topic_matches decides.
CREATE OR ALTER PROCEDURE imq_matching_bindings (p_topic mq_name)
RETURNS (pattern mq_name, type mq_name)
AS
DECLARE v_topic varchar(500) CHARACTER SET UTF8;
BEGIN
    v_topic = '.' || REPLACE(p_topic, '.', '..') || '.';
    FOR SELECT b.pattern, b.type
        FROM mq_binding AS b
        WHERE :v_topic LIKE b.like_pattern ESCAPE '\'
        INTO pattern, type
    DO
        IF (POSITION('*' IN pattern) = 0 OR imq_topic_matches(pattern, p_topic) = 1) THEN
            SUSPEND;
END

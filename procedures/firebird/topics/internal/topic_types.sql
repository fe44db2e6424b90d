-- topic_types: the types that are bound to a topic.
-- Returns:     type: each type once, ordered by name
CREATE OR ALTER PROCEDURE imq_topic_types (p_topic mq_name)
RETURNS (type mq_name)
AS
BEGIN
    FOR SELECT b.type FROM imq_matching_bindings(:p_topic) AS b GROUP BY 1 ORDER BY 1 INTO type DO
        SUSPEND;
END

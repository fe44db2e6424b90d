-- matching_bindings: the bindings whose pattern matches a topic.
-- Returns: pattern, type
-- Transaction: reads only, at READ COMMITTED: otherwise a publisher at SERIALIZABLE would lock bindings until it ends
--
-- One index seek per leading part of the topic: up to its first wildcard, a matching pattern equals such a part or is
-- empty.
CREATE OR ALTER FUNCTION mq_internal.matching_bindings (@topic nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT b.pattern, b.type
    FROM mq_internal.topic_beginnings(@topic) AS p
    INNER JOIN mq.binding AS b WITH (READCOMMITTED, FORCESEEK, INDEX (binding_prefix)) ON b.prefix = p.prefix
    WHERE b.pattern = @topic OR mq_internal.topic_matches(b.pattern, @topic) = 1;

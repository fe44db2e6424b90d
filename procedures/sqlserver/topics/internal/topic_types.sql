-- topic_types: the types that are bound to a topic.
-- Returns: type: each type once
CREATE OR ALTER FUNCTION mq_internal.topic_types (@topic nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT DISTINCT b.type FROM mq_internal.matching_bindings(@topic) AS b;

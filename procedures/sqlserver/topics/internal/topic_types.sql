-- topic_types: the types that are bound to a topic.
-- Arguments:   @topic
-- Returns:     type: each type once
-- Errors:      none
-- Transaction: reads only, at READ COMMITTED
-- Example:     SELECT type FROM mq.topic_types(N'orders.eu.paid');

CREATE OR ALTER FUNCTION mq.topic_types (@topic nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT DISTINCT b.type FROM mq.matching_bindings(@topic) AS b;
GO

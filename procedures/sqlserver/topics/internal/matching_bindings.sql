-- matching_bindings: the bindings whose pattern matches a topic.
-- Arguments:   @topic
-- Returns:     pattern, type
-- Errors:      none
-- Transaction: reads only, at READ COMMITTED: a publisher at SERIALIZABLE would keep bindings locked until its end
-- Example:     SELECT pattern, type FROM mq.matching_bindings(N'orders.eu.paid');
--
-- One seek for each word of the topic: a pattern that matches begins with its first words, or with none of them.

CREATE OR ALTER FUNCTION mq.matching_bindings (@topic nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT b.pattern, b.type
    FROM mq.topic_beginnings(@topic) AS p
    INNER JOIN mq.binding AS b WITH (READCOMMITTED) ON b.prefix = p.prefix
    WHERE b.pattern = @topic OR mq.topic_matches(b.pattern, @topic) = 1;
GO

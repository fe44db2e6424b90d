-- bindings_of: the bindings that a topic matches.
-- Arguments:   @topic
-- Returns:     pattern, type
-- Errors:      none
-- Transaction: reads only, at READ COMMITTED: a publisher at SERIALIZABLE would keep bindings locked until its end
-- Example:     SELECT DISTINCT type FROM mq.bindings_of(N'orders.eu.paid');
--
-- One seek for each word of the topic: a pattern that matches begins with its first words, or with none of them.

CREATE OR ALTER FUNCTION mq.bindings_of (@topic nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT b.pattern, b.type
    FROM mq.topic_beginnings(@topic) AS p
    INNER JOIN mq.binding AS b WITH (READCOMMITTED) ON b.prefix = p.prefix
    WHERE b.pattern = @topic OR mq.topic_matches(@topic, b.pattern) = 1;
GO

-- topic_types: the types that are bound to a topic.
-- Arguments:   p_topic
-- Returns:     type: each type once, ordered by name
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT * FROM mq_topic_types('orders.eu.paid');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_topic_types (
    p_topic mq_name
)
RETURNS (
    type mq_name
)
AS
BEGIN
    FOR SELECT b.type FROM mq_matching_bindings(:p_topic) AS b GROUP BY 1 ORDER BY 1 INTO type DO
        SUSPEND;
END^

SET TERM ; ^

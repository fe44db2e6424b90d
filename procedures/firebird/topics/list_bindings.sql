-- list_bindings: list all bindings, or those whose pattern matches a topic.
-- Arguments:   p_topic (words separated by dots; NULL: all bindings)
-- Returns:     pattern, type: one row per binding, in this order
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     SELECT * FROM mq_list_bindings('orders.eu.paid');

CREATE OR ALTER PROCEDURE mq_list_bindings (
    p_topic mq_argument = NULL
)
RETURNS (pattern mq_name, type mq_name)
AS
BEGIN
    IF (p_topic IS NULL) THEN
        FOR SELECT b.pattern, b.type FROM mq_binding AS b ORDER BY b.pattern, b.type INTO pattern, type DO
            SUSPEND;
    ELSE
    BEGIN
        EXECUTE PROCEDURE imq_require_topic('topic', p_topic, 0);
        FOR SELECT b.pattern, b.type FROM imq_matching_bindings(:p_topic) AS b ORDER BY b.pattern, b.type INTO pattern, type DO
            SUSPEND;
    END
END

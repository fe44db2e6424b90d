-- list_bindings: list all bindings, or those whose pattern matches a topic.
-- Arguments:   @topic (words separated by dots; NULL: all bindings)
-- Returns:     pattern, type: one row per binding, in this order
-- Errors:      50002 invalid_argument
-- Transaction: reads only
-- Example:     EXEC mq.list_bindings N'orders.eu.paid';
CREATE OR ALTER PROCEDURE mq.list_bindings
    @topic nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: no locks of this read stay
    IF @topic IS NULL
        SELECT pattern, type FROM mq.binding ORDER BY pattern, type;
    ELSE
    BEGIN
        EXEC mq_internal.require_topic 'topic', @topic, 0;
        SELECT pattern, type FROM mq_internal.matching_bindings(@topic) ORDER BY pattern, type;
    END;
END;

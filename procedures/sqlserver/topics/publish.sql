-- publish: send one message to each type that is bound to the topic.
-- Arguments:   @topic (words separated by dots, 1 to 200 characters), @body (up to 16 MiB)
-- Returns:     affected: messages sent
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     EXEC mq.publish N'orders.eu.paid', N'{"id":17}';
CREATE OR ALTER PROCEDURE mq.publish
    @topic nvarchar(max),
    @body nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    EXEC mq.publish_with @topic, @body;
END;

-- publish: send one message to each type that is bound to the topic.
-- Arguments:   p_topic (words separated by dots, 1 to 200 characters), p_body (up to 16 MiB)
-- Returns:     affected: messages sent
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; waits like send_message
-- Example:     SELECT * FROM mq_publish('orders.eu.paid', '{"order":17}');

CREATE OR ALTER PROCEDURE mq_publish (
    p_topic mq_argument,
    p_body mq_text
)
RETURNS (affected bigint)
AS
BEGIN
    EXECUTE PROCEDURE mq_publish_with(p_topic, p_body) RETURNING_VALUES affected;
    SUSPEND;
END

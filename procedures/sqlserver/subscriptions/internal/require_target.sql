-- require_target: refuse what is not either a type or a topic.
-- Arguments:   @type, @topic, @optional (1: both may be NULL)
-- Returns:     nothing
-- Errors:      50002 invalid_argument
-- Transaction: reads nothing
-- Example:     EXEC mq.require_target NULL, N'orders.changed', 0;

CREATE OR ALTER PROCEDURE mq.require_target
    @type nvarchar(max),
    @topic nvarchar(max),
    @optional bit
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    IF (@type IS NOT NULL AND @topic IS NOT NULL) OR (@type IS NULL AND @topic IS NULL AND @optional = 0)
        EXEC mq.raise_error 'invalid_argument', N'type: give either a type or a topic';
    EXEC mq.require_name 'type', @type, 1;
    IF @topic IS NOT NULL
        EXEC mq.require_topic 'topic', @topic, 0;
END;
GO

-- forget_steps: delete the steps of messages.
-- Arguments: @items (at most 1,000)
CREATE OR ALTER PROCEDURE mq_internal.forget_steps
    @items mq.items READONLY
AS
BEGIN
    -- Few messages have steps, and most calls find none; one message may have 10,000.
    DECLARE @step int = 1000, @took int = 1000;
    WHILE @took = @step
    BEGIN
        DELETE TOP (@step) s
        FROM @items AS i
        INNER JOIN mq.step AS s WITH (ROWLOCK) ON s.id = i.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SET @took = @@ROWCOUNT;
    END;
END;

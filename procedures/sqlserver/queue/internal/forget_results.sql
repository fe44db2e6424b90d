-- forget_results: delete the stored results of messages.
-- Arguments: @items (at most 1,000)
CREATE OR ALTER PROCEDURE mq_internal.forget_results
    @items mq.items READONLY
AS
BEGIN
    DELETE k
    FROM @items AS i
    INNER JOIN mq.result AS k WITH (ROWLOCK) ON k.id = i.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;

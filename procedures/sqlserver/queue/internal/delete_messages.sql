-- delete_messages: delete messages whose row in a state table is already deleted, and their dedup_keys.
-- Arguments: @items (at most 1,000)
CREATE OR ALTER PROCEDURE mq_internal.delete_messages
    @items mq.items READONLY
AS
BEGIN
    DECLARE @gone TABLE (id bigint NOT NULL PRIMARY KEY, dedup_key nvarchar(400));
    DELETE m
    OUTPUT deleted.id, deleted.dedup_key INTO @gone (id, dedup_key)
    FROM @items AS i
    INNER JOIN mq.message AS m WITH (ROWLOCK) ON m.id = i.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    IF EXISTS (SELECT * FROM @gone WHERE dedup_key IS NOT NULL)
        DELETE k
        FROM @gone AS g
        INNER JOIN mq.dedup AS k WITH (ROWLOCK) ON k.id = g.id
        WHERE g.dedup_key IS NOT NULL
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;

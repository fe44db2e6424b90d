-- put_back: make the messages of a batch ready again, at the position where they were sent; delete those that were cancelled.
-- Arguments: @key (the batch, whose messages are in mq.claimed), @type, @more (added to the attempts: -1 for an attempt
--     that was not made)
-- Returns: @count: how many messages
CREATE OR ALTER PROCEDURE mq_internal.put_back
    @key uniqueidentifier, @type nvarchar(400), @more smallint, @count bigint OUTPUT
AS
BEGIN
    DECLARE @step int = 1000, @took int = 1000;
    DECLARE @back mq.items;
    SET @count = 0;
    WHILE @took = @step
    BEGIN
        DELETE FROM @back;
        DELETE TOP (@step) FROM mq.claimed WITH (ROWLOCK)
        OUTPUT deleted.id, deleted.attempt + @more INTO @back (id, attempts)
        WHERE batch_key = @key;
        SET @took = @@ROWCOUNT;
        SET @count = @count + @took;
        IF @took > 0
        BEGIN
            EXEC mq_internal.drop_cancelled @type, @back;
            EXEC mq_internal.place_ready @type, @back;
        END;
    END;
    IF @count > 0
        EXEC mq_internal.lower_mark @type;
END;

-- free_places: record that messages leave their batch: their places under the limits are free when the caller commits.
-- Arguments: @type, @key (their batch), @id (one message; NULL: all), @counted and @in_groups (of the batch)
CREATE OR ALTER PROCEDURE mq_internal.free_places
    @type nvarchar(400), @key uniqueidentifier, @id bigint, @counted bit, @in_groups bit
AS
BEGIN
    DECLARE @step int = 1000, @took int = 1, @last bigint = -9223372036854775808;
    DECLARE @items mq.items;
    IF @counted = 1
        INSERT INTO mq.freed (type, places)
        SELECT @type, COUNT(*) FROM mq.claimed WHERE batch_key = @key AND (@id IS NULL OR id = @id);
    IF @in_groups = 1 AND @id IS NOT NULL
        INSERT INTO @items (id, attempts) SELECT id, attempt FROM mq.claimed WHERE batch_key = @key AND id = @id;
    WHILE @in_groups = 1 AND @took > 0
    BEGIN
        IF @id IS NULL
        BEGIN
            DELETE FROM @items;
            INSERT INTO @items (id, attempts)
            SELECT TOP (@step) id, attempt FROM mq.claimed WHERE batch_key = @key AND id > @last ORDER BY id;
            SELECT @last = COALESCE(MAX(id), @last) FROM @items;
        END;
        INSERT INTO mq.group_freed (type, group_key, id)
        SELECT l.type, l.group_key, l.id
        FROM @items AS i
        INNER JOIN mq.group_lock AS l WITH (READUNCOMMITTED) ON l.id = i.id AND l.blocks = 0
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SET @took = CASE WHEN @id IS NULL AND EXISTS (SELECT * FROM @items) THEN 1 ELSE 0 END;
    END;
END;

-- take_freed: subtract freed places from the number of active messages of a type.
-- Arguments: @type (the caller has locked its row of mq.limited), @active (the value of that row)
-- Returns: @active (the new value)
CREATE OR ALTER PROCEDURE mq_internal.take_freed
    @type nvarchar(400), @active int OUTPUT
AS
BEGIN
    DECLARE @step int = 1000, @took int = 1000, @places int;
    DECLARE @freed TABLE (places int NOT NULL);
    WHILE @took = @step
    BEGIN
        DELETE TOP (@step) FROM mq.freed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        OUTPUT deleted.places INTO @freed (places)
        WHERE type = @type;
        SET @took = @@ROWCOUNT;
    END;
    SELECT @places = SUM(places) FROM @freed;
    IF @places > 0
    BEGIN
        SET @active = CASE WHEN @active > @places THEN @active - @places ELSE 0 END;
        UPDATE mq.limited SET active = @active WHERE type = @type;
    END;
END;

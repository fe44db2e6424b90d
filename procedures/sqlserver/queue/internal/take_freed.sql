-- take_freed: subtract the places that messages have left from the active messages of a type.
-- Arguments:   @type (its row in mq.limited is the caller's), @active (as that row says)
-- Returns:     @active (as it says now)
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; passes over what is not committed
-- Example:     EXEC mq.take_freed N'email', @active OUTPUT;

CREATE OR ALTER PROCEDURE mq.take_freed
    @type nvarchar(400),
    @active int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @step int = 1000, @took int = 1, @places int;
    DECLARE @freed TABLE (places int NOT NULL);
    WHILE @took > 0
    BEGIN
        DELETE TOP (@step) FROM mq.freed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        OUTPUT deleted.places INTO @freed (places)
        WHERE type = @type;
        SET @took = CASE WHEN @@ROWCOUNT < @step THEN 0 ELSE 1 END;
    END;
    SELECT @places = SUM(places) FROM @freed;
    IF @places > 0
    BEGIN
        SET @active = CASE WHEN @active > @places THEN @active - @places ELSE 0 END;
        UPDATE mq.limited SET active = @active WHERE type = @type;
    END;
END;
GO

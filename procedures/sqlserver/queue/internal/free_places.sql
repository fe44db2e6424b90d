-- free_places: messages leave a batch: note that the places they took under the limits are free when the caller commits.
-- Arguments:   @type, @key (their batch), @id (one of them; NULL: all), @counted (the batch counts in mq.limited)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; waits for nobody
-- Example:     EXEC mq.free_places N'email', @key, NULL, 1;

CREATE OR ALTER PROCEDURE mq.free_places
    @type nvarchar(400),
    @key uniqueidentifier,
    @id bigint,
    @counted bit
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    IF @counted = 1
        INSERT INTO mq.freed (type, places)
        SELECT @type, COUNT(*) FROM mq.claimed WHERE batch_key = @key AND (@id IS NULL OR id = @id);
END;
GO

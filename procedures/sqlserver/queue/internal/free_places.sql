-- free_places: messages leave a batch: note that the places they took under the limits are free when the caller commits.
-- Arguments:   @type, @key (their batch), @id (one of them; NULL: all), @counted and @in_groups (of the batch)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's; waits for nobody
-- Example:     EXEC mq.free_places N'email', @key, NULL, 1, 0;

CREATE OR ALTER PROCEDURE mq.free_places
    @type nvarchar(400),
    @key uniqueidentifier,
    @id bigint,
    @counted bit,
    @in_groups bit
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    IF @counted = 1
        INSERT INTO mq.freed (type, places)
        SELECT @type, COUNT(*) FROM mq.claimed WHERE batch_key = @key AND (@id IS NULL OR id = @id);
    IF @in_groups = 1
        INSERT INTO mq.group_freed (type, group_key, id)
        SELECT l.type, l.group_key, l.id
        FROM mq.claimed AS c
        INNER JOIN mq.group_lock AS l WITH (READUNCOMMITTED) ON l.id = c.id AND l.blocks = 0
        WHERE c.batch_key = @key AND (@id IS NULL OR c.id = @id)
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;
GO

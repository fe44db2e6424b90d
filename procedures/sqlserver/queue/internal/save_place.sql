-- save_place: write down where a reader of a ring stopped, and delete its places before.
-- Arguments:   @type, @reader, @n and @place_id (the newest place that the claim read; NULL: there was none), @after_id (the place
--              that the caller named; NULL: none), @last_id (the last message that it got), @size (of the claim)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.save_place N'crawl', N'worker-1', 3, 100, NULL, 120, 20;
--
-- Not the place before: until we commit it is the only one that others see. But those that were left a little before it, the last
-- one of the round before, and at the end of a round the last two.

CREATE OR ALTER PROCEDURE mq.save_place
    @type nvarchar(400),
    @reader nvarchar(400),
    @n bigint,
    @place_id bigint,
    @after_id bigint,
    @last_id bigint,
    @size int
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @after bigint = COALESCE(@after_id, @place_id, 0);
    INSERT INTO mq.ring (type, reader, n, after_id)
    VALUES (@type, @reader, COALESCE(@n, 0) + CASE WHEN @after_id IS NULL THEN 0 ELSE 1 END
        + CASE WHEN @last_id > @after THEN 0 ELSE 1 END, @last_id);
    IF @after_id IS NULL AND @last_id > @after
        DELETE FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND reader = @reader
            AND ((n = @n AND after_id < @place_id AND after_id >= @place_id - 20 * @size) OR n = @n - 1);
    ELSE
        DELETE FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND reader = @reader AND n <= @n AND n >= @n - 1 AND (n < @n OR after_id < @place_id);
END;
GO

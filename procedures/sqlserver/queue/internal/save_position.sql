-- save_position: write how far a reader of a ring has come, and delete the positions before.
-- Arguments:   @type, @reader, @size (of the claim), @n and @after_id (the round and the last id), @old_n and @old_after_id (the position
--              that the claim read; NULL: there was none)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.save_position N'crawl', N'worker-1', 10, 3, 170, 3, 160;
--
-- A position is inserted, not updated: nobody waits for it, and of two claims of one reader that started at the same position the one
-- that went further counts, whichever commits last. The position before stays: until we commit it is the only one that others see. But
-- those that were left a little before it go, and the last one of the round before, and at the end of a round the last two.

CREATE OR ALTER PROCEDURE mq.save_position
    @type nvarchar(400),
    @reader nvarchar(400),
    @size int,
    @n bigint,
    @after_id bigint,
    @old_n bigint,
    @old_after_id bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Other claims of this reader that run at the same time have left their positions at most so many claims before.
    DECLARE @claims int = 20;
    INSERT INTO mq.ring (type, reader, n, after_id) VALUES (@type, @reader, @n, @after_id);
    IF @n = @old_n
        DELETE FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND reader = @reader
            AND ((n = @old_n AND after_id < @old_after_id AND after_id >= @old_after_id - @claims * @size) OR n = @old_n - 1);
    ELSE
        DELETE FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND reader = @reader AND n <= @old_n AND n >= @old_n - 1 AND (n < @old_n OR after_id < @old_after_id);
END;
GO

-- renew_ring_mark: write the low-water mark that a claim of a ring leaves, and delete those before the one that it read.
-- Arguments:   @type, @n (the number of the mark that the claim read; NULL: there was none), @after_id (nothing is ready at or below),
--              @low_until (how long the mark holds), @promoted_to (nothing due before is left to promote)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.renew_ring_mark N'crawl', 5, 17, @low_until, @promoted_to;

CREATE OR ALTER PROCEDURE mq.renew_ring_mark
    @type nvarchar(400),
    @n bigint,
    @after_id bigint,
    @low_until datetime2(7),
    @promoted_to datetime2(7)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Claims at work at the same time leave marks of few different numbers.
    DECLARE @old int = 20;
    INSERT INTO mq.ring (type, reader, n, after_id, low_until, promoted_to)
    VALUES (@type, N'', COALESCE(@n, 0) + 1, @after_id, @low_until, @promoted_to);
    DELETE FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE type = @type AND reader = N'' AND n < @n AND n >= @n - @old;
END;
GO

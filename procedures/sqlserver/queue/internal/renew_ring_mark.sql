-- renew_ring_mark: write the low-water mark of a round-robin claim, and delete the marks older than the one that it read.
-- Arguments:   @type, @n (the number of the mark that the claim read; NULL: there was none), @after_id (no message up to
--              this id is ready), @low_until (how long the mark holds), @promoted_to (no message due before this time is
--              delayed)
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim

CREATE OR ALTER PROCEDURE mq_internal.renew_ring_mark
    @type nvarchar(400),
    @n bigint,
    @after_id bigint,
    @low_until datetime2(7),
    @promoted_to datetime2(7)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Delete marks up to this many numbers back: concurrent claims may have left some.
    -- One renewal in a hundred deletes all: the lowered mark of a long transaction may be further back.
    DECLARE @old int = 20;
    INSERT INTO mq.ring (type, reader, n, after_id, low_until, promoted_to)
    VALUES (@type, N'', COALESCE(@n, 0) + 1, @after_id, @low_until, @promoted_to);
    DELETE r
    FROM mq.ring AS r WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
    WHERE r.type = @type AND r.reader = N'' AND r.n < @n AND r.n >= CASE @n % 100 WHEN 0 THEN 0 ELSE @n - @old END;
END;
GO

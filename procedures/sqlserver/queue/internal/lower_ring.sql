-- lower_ring: lower the low-water mark of a ring when a message becomes ready below it.
-- Arguments:   @type, @id (the lowest id that became ready)

CREATE OR ALTER PROCEDURE mq_internal.lower_ring
    @type nvarchar(400),
    @id bigint
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @n bigint, @after_id bigint, @low_until datetime2(7), @promoted_to datetime2(7);
    SELECT TOP (1) @n = n, @after_id = after_id, @low_until = low_until, @promoted_to = promoted_to
    FROM mq.ring WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (ring_newest))
    WHERE type = @type AND reader = N''
    ORDER BY n DESC, after_id DESC;
    IF @low_until > SYSUTCDATETIME() AND @id <= @after_id
        -- n + 2: a concurrent claim may write n + 1, and that mark must not count.
        INSERT INTO mq.ring (type, reader, n, after_id, low_until, promoted_to)
        VALUES (@type, N'', @n + 2, @id - 1, @low_until, @promoted_to);
END;
GO

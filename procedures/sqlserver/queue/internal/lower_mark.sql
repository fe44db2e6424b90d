-- lower_mark: make the next claim a full scan, if messages became ready below a low-water mark.
CREATE OR ALTER PROCEDURE mq_internal.lower_mark
    @type nvarchar(400)
AS
BEGIN
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @n bigint;
    SELECT TOP (1) @n = n FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type ORDER BY n DESC;
    IF @n IS NOT NULL
        -- n + 2: a concurrent claim may write marks with n + 1, and those must not count.
        INSERT INTO mq.mark (type, n, priority, run_at, id, scanned_at, promoted_to)
        VALUES (@type, @n + 2, -32768, '1900-01-01', 0, '1900-01-01', '1900-01-01');
END;

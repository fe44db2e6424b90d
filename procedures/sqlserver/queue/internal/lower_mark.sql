-- lower_mark: what was put back lies below a low-water mark: let the next claim scan the type from its very start.
-- Arguments:   @type
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     EXEC mq.lower_mark N'email';

CREATE OR ALTER PROCEDURE mq.lower_mark
    @type nvarchar(400)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- For as long as this call: senders may be at any level, and locked rows can be passed over at this one.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @n bigint;
    SELECT TOP (1) @n = n FROM mq.mark WITH (READPAST, READCOMMITTEDLOCK) WHERE type = @type ORDER BY n DESC;
    IF @n IS NOT NULL
        -- Two higher: a claim at work at this moment leaves marks that are one higher, and those must not count.
        INSERT INTO mq.mark (type, n, priority, run_at, id, scanned_at, promoted_to)
        VALUES (@type, @n + 2, -32768, '1900-01-01', 0, '1900-01-01', '1900-01-01');
END;
GO

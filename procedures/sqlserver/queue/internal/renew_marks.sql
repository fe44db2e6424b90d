-- renew_marks: write the low-water marks that a claim leaves, and delete those before the ones that it read.
-- Arguments:   @type, @n (the number of the marks that the claim read; NULL: there were none), @scanned_at (the last full scan),
--              @promoted_to (nothing due before is left to promote), @run_at (old marks that do not lie lower are lowered to it),
--              @size (at most so many marks), @found (the first message that the claim found of each priority)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.renew_marks N'email', 17, @now, @now, '9999-12-31', 8, @found;
--
-- The first message found of a priority is its mark; a priority of which nothing was found keeps the mark that it had. Marks are
-- inserted, never updated. Those that the claim read stay until its own are committed: meanwhile nobody else sees the new ones, and
-- would see none at all.

CREATE OR ALTER PROCEDURE mq.renew_marks
    @type nvarchar(400),
    @n bigint,
    @scanned_at datetime2(7),
    @promoted_to datetime2(7),
    @run_at datetime2(7),
    @size int,
    @found mq.places READONLY
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Claims at work at the same time leave marks of few different numbers.
    DECLARE @old int = 20;
    INSERT INTO mq.mark (type, n, priority, run_at, id, scanned_at, promoted_to)
    SELECT TOP (@size) @type, COALESCE(@n, 0) + 1, m.priority, m.run_at, m.id, @scanned_at, @promoted_to
    FROM (
        SELECT u.priority, u.run_at, u.id, ROW_NUMBER() OVER (PARTITION BY u.priority ORDER BY u.found DESC, u.run_at, u.id) AS nth
        FROM (
            SELECT f.priority, f.run_at, f.id, 1 AS found
            FROM @found AS f
            UNION ALL
            SELECT o.priority, CASE WHEN o.run_at < @run_at THEN o.run_at ELSE @run_at END,
                CASE WHEN o.run_at < @run_at THEN o.id ELSE 0 END, 0
            FROM mq.mark AS o WITH (READPAST, READCOMMITTEDLOCK)
            -- A mark at the very start marks nothing.
            WHERE o.type = @type AND o.n = @n AND (o.run_at > '1900-01-01' OR o.id > 0)
        ) AS u
    ) AS m
    WHERE m.nth = 1
    ORDER BY m.priority;
    IF @@ROWCOUNT > 0
        -- A mark that another claim is deleting stays until a later one passes by: they are few and never read.
        DELETE FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND n < @n AND n >= @n - @old;
END;
GO

-- renew_marks: write the low-water marks that a claim leaves, and delete those before the ones that it read.
-- Arguments:   @type, @n (the number of the marks that the claim read; NULL: there were none), @scanned_at (the last full scan),
--              @promoted_to (nothing due before is left to promote), @batch_key (of what the claim found in mq.claimed; NULL: nothing),
--              @at_least and @at_most (run_at of the marks of all other priorities from now on)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; never waits for another claim
-- Example:     EXEC mq.renew_marks N'email', 17, @now, @now, @batch_key, '0001-01-01', '9999-12-31';
--
-- The first message found of a priority is its mark. A priority of which nothing was found keeps the mark that it had. Marks are
-- inserted, never updated. Those that the claim read stay until its own are committed: meanwhile nobody else sees the new ones, and
-- would see none at all.

CREATE OR ALTER PROCEDURE mq.renew_marks
    @type nvarchar(400),
    @n bigint,
    @scanned_at datetime2(7),
    @promoted_to datetime2(7),
    @batch_key uniqueidentifier,
    @at_least datetime2(7),
    @at_most datetime2(7)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    -- Every mark costs a statement in each claim that comes short: further priorities are claimed without marks.
    DECLARE @marks int = 8;
    -- Claims at work at the same time leave marks of few different numbers.
    DECLARE @old int = 20;
    INSERT INTO mq.mark (type, n, priority, run_at, id, scanned_at, promoted_to)
    SELECT TOP (@marks) @type, COALESCE(@n, 0) + 1, m.priority, m.run_at, m.id, @scanned_at, @promoted_to
    FROM (
        SELECT u.priority, u.run_at, u.id, ROW_NUMBER() OVER (PARTITION BY u.priority ORDER BY u.found DESC, u.run_at, u.id) AS nth
        FROM (
            SELECT c.priority, c.run_at, c.id, 1 AS found
            FROM mq.claimed AS c
            WHERE c.batch_key = @batch_key
            UNION ALL
            SELECT k.priority, CASE WHEN k.run_at < @at_least THEN @at_least WHEN k.run_at < @at_most THEN k.run_at ELSE @at_most END,
                CASE WHEN k.run_at >= @at_least AND k.run_at < @at_most THEN k.id ELSE 0 END, 0
            FROM mq.mark AS k WITH (READPAST, READCOMMITTEDLOCK)
            WHERE k.type = @type AND k.n = @n AND (k.run_at > '1900-01-01' OR k.id > 0)
        ) AS u
    ) AS m
    WHERE m.nth = 1
    ORDER BY m.priority;
    IF @@ROWCOUNT = 0
        -- A mark at the very start skips nothing, but records the time of the last full scan.
        INSERT INTO mq.mark (type, n, priority, run_at, id, scanned_at, promoted_to)
        VALUES (@type, COALESCE(@n, 0) + 1, -32768, '1900-01-01', 0, @scanned_at, @promoted_to);
    -- A mark that another claim is deleting stays until a later one passes by: they are few and never read.
    DELETE FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND n < @n AND n >= @n - @old;
END;
GO

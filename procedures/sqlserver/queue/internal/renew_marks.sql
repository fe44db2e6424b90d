-- renew_marks: write the low-water marks of a claim, and delete the marks older than those that it read.
-- Arguments: @type, @n (the number of the marks that the claim read; NULL: there were none), @scanned_at (the last full
--     scan), @promoted_to (no message due before this time is delayed), @batch_key (of the messages that the claim
--     found, in mq.claimed; NULL: none), @lowest (of a ring: no message with a lower id is ready; NULL), @at_least and
--     @at_most (bounds for the run_at of the marks of all other priorities)
--
-- The first message found of a priority becomes its mark. A priority without found messages keeps its mark. Marks are
-- inserted, never updated. The marks that the claim read stay until the new ones are committed: other sessions do not
-- see the new ones before that, and would see none at all.
CREATE OR ALTER PROCEDURE mq_internal.renew_marks
    @type nvarchar(400), @n bigint, @scanned_at datetime2(7), @promoted_to datetime2(7), @batch_key uniqueidentifier,
    @lowest bigint, @at_least datetime2(7), @at_most datetime2(7)
AS
BEGIN
    -- Each mark costs one more statement in a claim that finds too few messages. Priorities after the eighth get no mark.
    DECLARE @marks int = 8;
    -- Delete marks up to this many numbers back: concurrent claims may have left some.
    -- One renewal in a hundred deletes all: the lowered mark of a long transaction may be further back.
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
            SELECT -32768, CAST('0001-01-01' AS datetime2(7)), @lowest, 1 WHERE @lowest IS NOT NULL
            UNION ALL
            SELECT k.priority, CASE WHEN k.run_at < @at_least THEN @at_least WHEN k.run_at < @at_most THEN k.run_at ELSE @at_most END,
                CASE WHEN k.run_at >= @at_least AND k.run_at < @at_most THEN k.id ELSE 0 END, 0
            FROM mq.mark AS k WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE k.type = @type AND k.n = @n AND (k.run_at > '1900-01-01' OR k.id > 0)
        ) AS u
    ) AS m
    WHERE m.nth = 1
    ORDER BY m.priority;
    IF @@ROWCOUNT = 0
        -- A mark at the very start skips nothing; it only records the time of the last full scan.
        INSERT INTO mq.mark (type, n, priority, run_at, id, scanned_at, promoted_to)
        VALUES (@type, COALESCE(@n, 0) + 1, -32768, '1900-01-01', 0, @scanned_at, @promoted_to);
    -- Skip marks that another claim is deleting. Leftover marks are few and never read; a later claim deletes them.
    DELETE FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND n < @n AND n >= CASE @n % 100 WHEN 0 THEN 0 ELSE @n - @old END;
END;

-- has_work: whether a type that is not paused may have something to claim until a time: a few reads of indexes, for lists
--     of types that are mostly empty.
-- Arguments: @type, @now, @until (at least @now)
-- Returns: a row if it may; limits, and messages that wait for others of their group, are not checked
--
-- Low-water marks keep claims from reading the deleted rows of finished messages, see pick. Where claims used them within
-- the last second, this function leaves the search to the claim.
CREATE OR ALTER FUNCTION mq_internal.has_work (@type nvarchar(400), @now datetime2(7), @until datetime2(7))
RETURNS TABLE
AS
RETURN
    SELECT TOP (1) 1 AS found
    FROM (
        SELECT k.found
        FROM (
            SELECT TOP (1) 1 AS found, scanned_at
            FROM mq.mark WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            WHERE type = @type
            ORDER BY n DESC, priority, run_at, id
        ) AS k
        WHERE k.scanned_at BETWEEN DATEADD(SECOND, -1, @now) AND DATEADD(SECOND, 5, @now)
        UNION ALL
        SELECT TOP (1) 1 FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type
        UNION ALL
        SELECT TOP (1) 1 FROM mq.delayed WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND run_at <= @until
        UNION ALL
        SELECT TOP (1) 1 FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type = @type AND lease_until <= @until
        UNION ALL
        SELECT 1 WHERE mq_internal.next_due(@type) <= @until
        UNION ALL
        -- A claim looks for stuck groups after a change of limits: see clean_buckets.
        SELECT 1 FROM mq.queue WITH (READCOMMITTED, FORCESEEK, INDEX (queue_pk)) WHERE type = @type AND changed_at > DATEADD(SECOND, -10, @now)
    ) AS w
    CROSS APPLY mq_internal.policy(@type) AS p
    WHERE p.paused = 0;

-- return_batch: return the messages of a claim, in its order.
-- Arguments: @batch_key (NULL: nothing was found), @lease_until (NULL: a take, whose batch key is not returned),
--     @max_attempts (of the queue)
CREATE OR ALTER PROCEDURE mq_internal.return_batch
    @batch_key uniqueidentifier, @lease_until datetime2(7), @max_attempts int
AS
BEGIN
    SELECT m.id, m.type, m.body, m.headers, CAST(m.priority AS int) AS priority, m.group_key, m.dedup_key,
        CAST(c.attempt AS int) AS attempt, m.created_at, m.source,
        CASE WHEN @lease_until IS NOT NULL THEN @batch_key END AS batch_key, @lease_until AS lease_until,
        CAST(COALESCE(m.max_attempts, @max_attempts) AS int) AS max_attempts, COALESCE(m.sent_run_at, m.run_at) AS run_at,
        CAST(NULL AS nvarchar(max)) AS extra
    FROM mq.claimed AS c
    INNER JOIN mq.message AS m ON m.id = c.id
    WHERE c.batch_key = @batch_key
    ORDER BY c.priority, c.run_at, c.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;

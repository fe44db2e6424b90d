-- hold: store picked messages as a batch with a lease, and return them.
-- Arguments:   @batch_key, @type, @reader, @lease_seconds, @counted and @in_groups (as in mq.batch)
-- Returns:     the messages in order of priority, run_at, id

CREATE OR ALTER PROCEDURE mq_internal.hold
    @batch_key uniqueidentifier,
    @type nvarchar(400),
    @reader nvarchar(400),
    @lease_seconds int,
    @counted bit,
    @in_groups bit
AS
BEGIN
    DECLARE @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @until datetime2(7) = DATEADD(SECOND, @lease_seconds, @now);
    INSERT INTO mq.batch (batch_key, claimed_at, lease_until, lease_seconds, counted, in_groups, type, reader)
    VALUES (@batch_key, @now, @until, @lease_seconds, @counted, @in_groups, @type, @reader);
    SELECT m.id, m.type, m.body, m.headers, CAST(m.priority AS int) AS priority, m.group_key, m.dedup_key,
        CAST(c.attempt AS int) AS attempt, m.created_at, m.source, @batch_key AS batch_key, @until AS lease_until
    FROM mq.claimed AS c
    INNER JOIN mq.message AS m ON m.id = c.id
    WHERE c.batch_key = @batch_key
    ORDER BY c.priority, c.run_at, c.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;
GO

-- state_of: the state of a message: N, A, E, or C when it is archived; NULL when there is no such message.
-- Transaction: reads at the caller's level: at READ UNCOMMITTED it never waits
CREATE OR ALTER FUNCTION mq_internal.state_of (@id bigint)
RETURNS char(1)
AS
BEGIN
    DECLARE @state char(1);
    SELECT @state = CASE
            WHEN e.id IS NOT NULL THEN 'E'
            -- In a grouped queue a row of mq.ready is a ticket, which may remain while its message is active.
            WHEN d.id IS NOT NULL OR g.id IS NOT NULL OR (p.grouped = 0 AND r.id IS NOT NULL) THEN 'N'
            -- A message in none of these tables is active. Without row versions, a search of the batches would wait for others.
            ELSE 'A'
        END
    FROM mq.message AS m
    CROSS APPLY mq_internal.policy(m.type) AS p
    LEFT JOIN mq.dead AS e ON e.id = m.id
    LEFT JOIN mq.delayed AS d ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
    LEFT JOIN mq.grouped AS g ON g.id = m.id
    OUTER APPLY mq_internal.ready_row(m.type, m.id, m.priority, m.group_key, m.run_at) AS r
    WHERE m.id = @id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    IF @state IS NULL AND EXISTS (SELECT * FROM mq.archive WITH (FORCESEEK, INDEX (archive_id)) WHERE id = @id)
        SET @state = 'C';
    RETURN @state;
END;

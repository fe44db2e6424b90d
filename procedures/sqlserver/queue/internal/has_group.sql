-- has_group: whether a claim may find a group that is not blocked, in a queue with limits per group.
-- Returns: 1 or 0; checks the first 1,000 tickets of the type
CREATE OR ALTER FUNCTION mq_internal.has_group (@type nvarchar(400))
RETURNS bit
AS
BEGIN
    DECLARE @found bit = 0;
    SELECT TOP (1) @found = 1
    FROM (
        SELECT TOP (1000) id
        FROM mq.ready WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type
        ORDER BY priority, lane, run_at, id
    ) AS r
    CROSS APPLY mq_internal.ticket_state(r.id) AS t
    CROSS APPLY mq_internal.policy(@type) AS p
    CROSS APPLY mq_internal.group_places(@type, t.group_key) AS g
    WHERE t.what >= 2 AND (p.ordered = 1 OR g.places = 0 OR g.taken < g.places)
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    RETURN @found;
END;

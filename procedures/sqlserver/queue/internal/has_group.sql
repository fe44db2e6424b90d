-- has_group: whether a claim may find a group that is not blocked, in a queue with limits per group.
-- Returns:     1 or 0; checks the first 1,000 tickets of the type
-- Transaction: reads only, at READ COMMITTED; never waits

CREATE OR ALTER FUNCTION mq_internal.has_group (@type nvarchar(400))
RETURNS bit
AS
BEGIN
    DECLARE @found bit = 0;
    SELECT TOP (1) @found = 1
    FROM mq_internal.tickets(@type, 1, 1000, -32769, '0001-01-01', 0) AS t
    CROSS APPLY mq_internal.policy(@type) AS p
    CROSS APPLY mq_internal.group_places(@type, t.group_key) AS g
    WHERE t.what >= 2 AND t.nth = 1 AND (p.ordered = 1 OR p.group_max_active = 0 OR g.taken < p.group_max_active)
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    RETURN @found;
END;
GO

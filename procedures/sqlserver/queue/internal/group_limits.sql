-- group_limits: the share and the limits of a group: its own, or those of the queue.
-- Returns: one row: weight, places (1 in an ordered queue; 0: no limit), rate (0: no limit), seconds
CREATE OR ALTER FUNCTION mq_internal.group_limits (@type nvarchar(400), @group_key nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT COALESCE(g.weight, 1) AS weight, CASE p.ordered WHEN 1 THEN 1 ELSE COALESCE(g.max_active, p.group_max_active) END AS places,
        COALESCE(g.rate, p.group_rate) AS rate, COALESCE(g.rate_seconds, p.group_rate_seconds) AS seconds
    FROM mq_internal.policy(@type) AS p
    CROSS JOIN mq_internal.place(0, 1, 0, 0, @group_key, NULL) AS k
    LEFT JOIN mq.queue_group AS g WITH (READCOMMITTED, FORCESEEK, INDEX (queue_group_lane))
        ON g.type = @type AND g.lane = k.lane AND g.group_key = @group_key;

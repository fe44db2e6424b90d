-- stuck_groups: groups that have due messages and are not blocked, but have no ticket: claims do not find them.
-- Returns: group_key and id of the first message, among the first 10,000 messages of the type
-- Transaction: reads only and never waits: it may return a group that another transaction is about to unblock
--
-- A ticket is at its message's position or up to a millisecond after it: see issue_tickets.
CREATE OR ALTER FUNCTION mq_internal.stuck_groups (@type nvarchar(400))
RETURNS TABLE
AS
RETURN
    SELECT k.group_key, k.id
    FROM (
        SELECT x.group_key, MIN(x.id) AS id
        FROM (
            SELECT TOP (10000) group_key, id
            FROM mq.grouped WITH (READUNCOMMITTED)
            WHERE type = @type
            ORDER BY group_key, id
        ) AS x
        GROUP BY x.group_key
    ) AS k
    CROSS APPLY mq_internal.group_places(@type, k.group_key) AS w
    WHERE NOT EXISTS (
            SELECT *
            FROM mq.group_lock AS l WITH (READUNCOMMITTED)
            WHERE l.type = @type AND l.group_key = k.group_key AND l.blocks = 1
        )
        AND (w.places = 0 OR w.taken < w.places)
        AND NOT EXISTS (
            SELECT *
            FROM mq.grouped AS g WITH (READUNCOMMITTED)
            INNER JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = g.id
            CROSS APPLY mq_internal.places(m.priority, m.group_key, m.run_at) AS a
            INNER JOIN mq.ready AS r WITH (READUNCOMMITTED)
                ON r.type = @type AND r.priority = a.priority AND r.lane = a.lane AND r.run_at >= a.run_at
                AND r.run_at <= CASE WHEN a.run_at < m.run_at THEN a.run_at ELSE DATEADD(MILLISECOND, 1, a.run_at) END AND r.id = m.id
            WHERE g.type = @type AND g.group_key = k.group_key
        );

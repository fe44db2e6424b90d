-- tickets: the next tickets of a grouped queue, with the state of each ticket's group.
-- Arguments:   @type, @take (1: without tickets of blocked groups), @size (maximum number of tickets), @priority, @run_at
--              and @id (read after this position)
-- Returns:     n (1, 2, ... in the order of mq.ready), id, priority, run_at, attempts, group_key, what (0: nothing, 1: a
--              blocked group, 2: another group, 3: a message that is not in its group yet), nth (1, 2, ... among the
--              tickets of a group; those with what = 0 last)
-- Transaction: reads only and never waits; call it with FORCE ORDER, LOOP JOIN
--
-- READUNCOMMITTED shows uncommitted inserts, hides rows that are being deleted, and never waits. The caller checks again,
-- or locks, the rows that it relies on.

CREATE OR ALTER FUNCTION mq_internal.tickets (
    @type nvarchar(400), @take bit, @size int, @priority int, @run_at datetime2(7), @id bigint
)
RETURNS TABLE
AS
RETURN
    SELECT t.n, t.id, t.priority, t.run_at, t.attempts, t.group_key, t.what,
        ROW_NUMBER() OVER (PARTITION BY t.group_key ORDER BY CASE t.what WHEN 0 THEN 1 ELSE 0 END, t.n) AS nth
    FROM (
        SELECT k.id, k.priority, k.run_at, k.attempts, k.group_key,
            ROW_NUMBER() OVER (ORDER BY k.priority, k.run_at, k.id) AS n,
            CASE
                WHEN k.message_id IS NULL THEN 0
                WHEN k.grouped_id IS NOT NULL THEN CASE WHEN k.lock_id IS NULL THEN 2 ELSE 1 END
                WHEN k.own_id IS NOT NULL OR k.dead_id IS NOT NULL OR k.delayed_id IS NOT NULL THEN 0
                ELSE 3
            END AS what
        FROM (
            SELECT TOP (@size) r.id, r.priority, r.run_at, r.attempts, COALESCE(m.group_key, N'') AS group_key,
                m.id AS message_id, l.id AS lock_id, o.id AS own_id, g.id AS grouped_id, e.id AS dead_id, d.id AS delayed_id
            FROM mq.ready AS r WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
            LEFT JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = r.id
            OUTER APPLY (
                SELECT TOP (1) id
                FROM mq.group_lock WITH (READUNCOMMITTED)
                WHERE type = m.type AND group_key = COALESCE(m.group_key, N'') AND blocks = 1
            ) AS l
            LEFT JOIN mq.grouped AS g WITH (READUNCOMMITTED) ON g.id = m.id
            LEFT JOIN mq.group_lock AS o WITH (READUNCOMMITTED) ON o.id = m.id AND g.id IS NULL
            LEFT JOIN mq.dead AS e WITH (READUNCOMMITTED) ON e.id = m.id AND g.id IS NULL
            LEFT JOIN mq.delayed AS d WITH (READUNCOMMITTED)
                ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id AND g.id IS NULL
            WHERE r.type = @type AND r.priority >= @priority
                AND (r.priority > @priority OR r.run_at > @run_at OR (r.run_at = @run_at AND r.id > @id))
                AND (@take = 0 OR l.id IS NULL)
            ORDER BY r.priority, r.run_at, r.id
        ) AS k
    ) AS t;
GO

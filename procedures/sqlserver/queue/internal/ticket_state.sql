-- ticket_state: what a ticket of a grouped queue stands for.
-- Arguments: @id (of the ticket's message)
-- Returns: one row: group_key, what (0: nothing, 1: a blocked group, 2: another group, 3: a message that is not in its
--     group yet)
-- Transaction: reads only and never waits; call it with FORCE ORDER, LOOP JOIN
--
-- READUNCOMMITTED shows uncommitted inserts, hides rows that are being deleted, and never waits. The caller checks
-- again, or locks, the rows that it relies on.
CREATE OR ALTER FUNCTION mq_internal.ticket_state (@id bigint)
RETURNS TABLE
AS
RETURN
    SELECT COALESCE(m.group_key, N'') AS group_key,
        CASE
            WHEN m.id IS NULL THEN 0
            WHEN g.id IS NOT NULL THEN CASE WHEN l.id IS NULL THEN 2 ELSE 1 END
            WHEN o.id IS NOT NULL OR e.id IS NOT NULL OR d.id IS NOT NULL THEN 0
            ELSE 3
        END AS what
    FROM (SELECT @id AS id) AS k
    LEFT JOIN mq.message AS m WITH (READUNCOMMITTED) ON m.id = k.id
    OUTER APPLY (
        SELECT TOP (1) id
        FROM mq.group_lock WITH (READUNCOMMITTED)
        WHERE type = m.type AND group_key = COALESCE(m.group_key, N'') AND blocks = 1
    ) AS l
    LEFT JOIN mq.grouped AS g WITH (READUNCOMMITTED) ON g.id = m.id
    LEFT JOIN mq.group_lock AS o WITH (READUNCOMMITTED) ON o.id = m.id AND g.id IS NULL
    LEFT JOIN mq.dead AS e WITH (READUNCOMMITTED) ON e.id = m.id AND g.id IS NULL
    LEFT JOIN mq.delayed AS d WITH (READUNCOMMITTED) ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id AND g.id IS NULL;

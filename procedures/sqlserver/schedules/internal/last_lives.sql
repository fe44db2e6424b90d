-- last_lives: whether the last message of a schedule prevents the next one.
-- Arguments: @last_id, @overlap (of the schedule)
-- Returns: 1 while the last message is new, and without overlap also while it is active; a dead letter does not prevent
--     the next one
-- Transaction: reads only, and never waits for locks
--
-- It may read uncommitted rows: a message that is changing its state may count as new or active for another second,
-- which is before the schedule's next time.
CREATE OR ALTER FUNCTION mq_internal.last_lives (@last_id bigint, @overlap bit)
RETURNS bit
AS
BEGIN
    -- A message without any of these rows is active.
    RETURN CASE WHEN EXISTS (
        SELECT *
        FROM mq.message AS m WITH (READUNCOMMITTED)
        WHERE m.id = @last_id
            AND NOT EXISTS (SELECT * FROM mq.dead AS e WITH (READUNCOMMITTED) WHERE e.id = m.id)
            AND (
                @overlap = 0
                OR EXISTS (
                    SELECT * FROM mq.delayed AS d WITH (READUNCOMMITTED)
                    WHERE d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
                )
                OR EXISTS (SELECT * FROM mq.grouped AS g WITH (READUNCOMMITTED) WHERE g.id = m.id)
                OR (
                    EXISTS (SELECT * FROM mq_internal.policy(m.type) AS p WHERE p.grouped = 0)
                    AND EXISTS (
                        SELECT *
                        FROM mq_internal.places(m.priority, m.group_key, m.run_at) AS k
                        INNER JOIN mq.ready AS r WITH (READUNCOMMITTED)
                            ON r.type = m.type AND r.priority = k.priority AND r.lane = k.lane AND r.run_at = k.run_at AND r.id = m.id
                    )
                )
            )
    ) THEN 1 ELSE 0 END;
END;

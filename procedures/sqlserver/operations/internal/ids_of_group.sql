-- ids_of_group: the ids of a group's messages, from a bounded search.
-- Returns: id: the lowest @size ids found: all due messages of a queue with groups, and other messages among the first
--     10,000 of each state
CREATE OR ALTER FUNCTION mq_internal.ids_of_group (@type nvarchar(400), @group_key nvarchar(400), @size int)
RETURNS @ids TABLE (id bigint NOT NULL PRIMARY KEY)
AS
BEGIN
    DECLARE @cap int = 10000;
    INSERT INTO @ids (id)
    SELECT TOP (@size) f.id
    FROM (
        SELECT g.id FROM (SELECT TOP (@size) id FROM mq.grouped WHERE type = @type AND group_key = @group_key ORDER BY id) AS g
        UNION
        SELECT m.id
        FROM (
            -- In a queue with groups these rows are tickets.
            SELECT r.id FROM (SELECT TOP (@cap) id FROM mq.ready WHERE type = @type ORDER BY priority, lane, run_at, id) AS r
            UNION ALL
            SELECT d.id FROM (SELECT TOP (@cap) id FROM mq.delayed WHERE type = @type ORDER BY run_at, id) AS d
            UNION ALL
            SELECT a.id
            FROM (
                SELECT TOP (@cap) c.id
                FROM mq.batch AS b
                INNER JOIN mq.claimed AS c ON c.batch_key = b.batch_key
                WHERE b.type = @type
                ORDER BY b.lease_until
            ) AS a
            UNION ALL
            SELECT e.id FROM (SELECT TOP (@cap) id FROM mq.dead WHERE type = @type ORDER BY died_at DESC, id DESC) AS e
        ) AS x
        INNER JOIN mq.message AS m ON m.id = x.id
        WHERE m.group_key = @group_key
    ) AS f
    ORDER BY f.id
    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    RETURN;
END;

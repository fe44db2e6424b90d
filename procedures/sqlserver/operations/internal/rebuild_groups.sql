-- rebuild_groups: make groups claimable after limits per group were raised or removed.
CREATE OR ALTER PROCEDURE mq_internal.rebuild_groups
    @type nvarchar(400)
AS
BEGIN
    DECLARE @step int = 1000, @took int = 1, @group_key nvarchar(400);
    DECLARE @heads mq.items;
    DECLARE @first TABLE (group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, id bigint);
    -- For some seconds claims search for stuck groups: a claim that began with the old limits may be dropping tickets at
    -- this moment.
    UPDATE mq.queue SET changed_at = SYSUTCDATETIME() WHERE type = @type;
    -- Blocked groups have no ticket. An extra ticket does no harm.
    WHILE @took > 0
    BEGIN
        DELETE FROM @first;
        DELETE FROM @heads;
        INSERT INTO @first (group_key, id)
        SELECT b.group_key, g.id
        FROM (
            SELECT DISTINCT TOP (@step) group_key
            FROM mq.group_lock WITH (READUNCOMMITTED)
            WHERE type = @type AND (@group_key IS NULL OR group_key > @group_key)
            ORDER BY group_key
        ) AS b
        OUTER APPLY (
            SELECT TOP (1) id
            FROM mq.grouped WITH (READUNCOMMITTED)
            WHERE type = @type AND group_key = b.group_key
            ORDER BY id
        ) AS g
        OPTION (FORCE ORDER, LOOP JOIN);
        SET @took = @@ROWCOUNT;
        SELECT @group_key = MAX(group_key) FROM @first;
        INSERT INTO @heads (id, attempts) SELECT id, 0 FROM @first WHERE id IS NOT NULL;
        EXEC mq_internal.issue_tickets @type, @heads, 1;
    END;
    EXEC mq_internal.hurry_groups @type;
END;

-- rebuild_groups: make groups claimable after limits per group were raised or removed.
CREATE OR ALTER PROCEDURE mq_internal.rebuild_groups
    @type nvarchar(400)
AS
BEGIN
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @step int = 1000, @took int = 1, @group_key nvarchar(400), @last bigint;
    DECLARE @heads mq.items;
    DECLARE @first TABLE (group_key nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL PRIMARY KEY, id bigint);
    DECLARE @waiting TABLE (id bigint NOT NULL PRIMARY KEY, priority smallint NOT NULL, attempts smallint NOT NULL);
    -- For some seconds claims search for stuck groups: a claim that began with the old limits may be dropping tickets at
    -- this moment.
    UPDATE mq.queue SET changed_at = @now WHERE type = @type;
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
        IF @took > 0
        BEGIN
            SELECT @group_key = MAX(group_key) FROM @first;
            INSERT INTO @heads (id, attempts) SELECT id, 0 FROM @first WHERE id IS NOT NULL;
            EXEC mq_internal.issue_tickets @type, @heads, 1;
        END;
    END;
    -- Messages that wait for a token of their group become due now.
    SELECT @took = 1, @last = -9223372036854775808;
    WHILE @took > 0
    BEGIN
        DELETE FROM @heads;
        DELETE FROM @waiting;
        INSERT INTO @heads (id, attempts)
        SELECT TOP (@step) id, 0 FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND blocks = 1 AND id > @last ORDER BY id;
        SET @took = @@ROWCOUNT;
        IF @took > 0
        BEGIN
            SELECT @last = MAX(id) FROM @heads;
            DELETE d
            OUTPUT deleted.id, deleted.priority, deleted.attempts INTO @waiting (id, priority, attempts)
            FROM @heads AS h
            INNER JOIN mq.message AS m WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON m.id = h.id
            INNER JOIN mq.delayed AS d WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
                ON d.type = m.type AND d.run_at = m.run_at AND d.id = m.id
            WHERE d.run_at > @now AND d.error IS NULL
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            UPDATE m
            SET run_at = @now
            FROM @waiting AS w
            INNER JOIN mq.message AS m WITH (ROWLOCK) ON m.id = w.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            INSERT INTO mq.delayed (type, run_at, id, priority, attempts) SELECT @type, @now, id, priority, attempts FROM @waiting;
        END;
    END;
END;

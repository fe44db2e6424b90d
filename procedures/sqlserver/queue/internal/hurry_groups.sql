-- hurry_groups: after limits per group or the clock were changed, make messages due that wait for a token.
-- Transaction: skips messages that others have locked
--
-- The next claim delays them again if there is still no token.
CREATE OR ALTER PROCEDURE mq_internal.hurry_groups
    @type nvarchar(400)
AS
BEGIN
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @step int = 1000, @last bigint = -9223372036854775808;
    DECLARE @heads mq.items;
    DECLARE @waiting TABLE (id bigint NOT NULL PRIMARY KEY, priority smallint NOT NULL, attempts smallint NOT NULL);
    WHILE @last IS NOT NULL
    BEGIN
        DELETE FROM @heads;
        DELETE FROM @waiting;
        INSERT INTO @heads (id, attempts)
        SELECT TOP (@step) id, 0 FROM mq.group_lock WITH (READUNCOMMITTED) WHERE type = @type AND blocks = 1 AND id > @last ORDER BY id;
        SET @last = (SELECT MAX(id) FROM @heads);
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

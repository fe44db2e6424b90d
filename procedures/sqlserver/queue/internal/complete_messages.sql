-- complete_messages: complete messages: delete them, or archive them if the queue's policy is archive.
-- Arguments: @key (the batch, whose messages are in mq.claimed), @id (one message; NULL: all), @type, @consumer
CREATE OR ALTER PROCEDURE mq_internal.complete_messages
    @key uniqueidentifier, @id bigint, @type nvarchar(400), @consumer nvarchar(400), @count bigint OUTPUT
AS
BEGIN
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @step int = 1000, @took int = 1000;
    DECLARE @ordered bit, @grouped bit, @on_complete varchar(7), @saved bigint;
    DECLARE @done mq.items;
    SELECT @ordered = ordered, @grouped = grouped, @on_complete = on_complete FROM mq_internal.policy(@type);
    SET @count = 0;
    WHILE @took = @step
    BEGIN
        DELETE FROM @done;
        IF @id IS NULL
            DELETE TOP (@step) FROM mq.claimed WITH (ROWLOCK)
            OUTPUT deleted.id, deleted.attempt INTO @done (id, attempts)
            WHERE batch_key = @key;
        ELSE
            DELETE FROM mq.claimed WITH (ROWLOCK)
            OUTPUT deleted.id, deleted.attempt INTO @done (id, attempts)
            WHERE batch_key = @key AND id = @id;
        SET @took = @@ROWCOUNT;
        SET @count = @count + @took;
        IF @took > 0
        BEGIN
            IF @on_complete = 'archive'
            BEGIN
                INSERT INTO mq.archive (id, completed_at, created_at, priority, attempts, type, body, headers, group_key,
                    dedup_key, source, consumer, result)
                SELECT m.id, @now, m.created_at, m.priority, d.attempts, m.type, m.body, m.headers, m.group_key, m.dedup_key,
                    m.source, @consumer, k.result
                FROM @done AS d
                INNER JOIN mq.message AS m ON m.id = d.id
                LEFT JOIN mq.result AS k ON k.id = d.id
                OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                EXEC mq_internal.forget_results @done;
            END;
            IF @ordered = 1
                EXEC mq_internal.free_groups @type, @done;
            ELSE IF @grouped = 1
                EXEC mq_internal.issue_tickets @type, @done, 1;
            EXEC mq_internal.delete_messages @done;
            -- After it, which waits for a transaction that is saving a step. Few messages have steps.
            SET @saved = NULL;
            SELECT TOP (1) @saved = s.id
            FROM @done AS d
            INNER JOIN mq.step AS s ON s.id = d.id
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            IF @saved IS NOT NULL
            BEGIN
                IF @on_complete = 'archive'
                    UPDATE a SET steps = (
                        SELECT s.step, s.step_value AS value, CONVERT(varchar(33), s.saved_at, 126) + 'Z' AS saved_at
                        FROM mq.step AS s WHERE s.id = a.id ORDER BY s.n FOR JSON PATH, INCLUDE_NULL_VALUES
                    )
                    FROM @done AS d
                    INNER JOIN mq.archive AS a WITH (ROWLOCK) ON a.completed_at = @now AND a.id = d.id
                    WHERE EXISTS (SELECT 1 FROM mq.step AS s WHERE s.id = d.id)
                    OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
                EXEC mq_internal.forget_steps @done;
            END;
        END;
    END;
END;

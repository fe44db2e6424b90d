-- forget_reports: delete figures older than a day, and consumers that stopped an hour ago or are silent for a day.
-- Returns: nothing; a call deletes at most 1,000 rows of each
CREATE OR ALTER PROCEDURE mq_internal.forget_reports
    @now datetime2(7)
AS
BEGIN
    DECLARE @step int = 1000, @hour_ago datetime2(7) = DATEADD(HOUR, -1, @now), @day_ago datetime2(7) = DATEADD(HOUR, -24, @now);
    DECLARE @old TABLE (
        minute datetime2(7), type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
        consumer nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL
    );
    -- First the keys, without holding locks; then each row by its key. Rows that others have locked are not found here.
    INSERT INTO @old (minute, type, consumer)
    SELECT TOP (@step) minute, type, consumer
    FROM mq.report WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (report_pk))
    WHERE minute < @day_ago
    ORDER BY minute, type, consumer;
    IF @@ROWCOUNT > 0
        DELETE t
        FROM @old AS o
        INNER JOIN mq.report AS t WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (report_pk))
            ON t.minute = o.minute AND t.type = o.type AND t.consumer = o.consumer
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
    DELETE FROM @old;
    -- The table has about as many rows as there were consumers within a day.
    INSERT INTO @old (type, consumer)
    SELECT TOP (@step) type, consumer
    FROM mq.consumer WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
    WHERE reported_at < CASE WHEN due_at IS NULL THEN @hour_ago ELSE @day_ago END;
    IF @@ROWCOUNT > 0
        DELETE c
        FROM @old AS o
        INNER JOIN mq.consumer AS c WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (consumer_pk))
            ON c.type = o.type AND c.consumer = o.consumer
        -- The consumer may have reported in the meantime.
        WHERE c.reported_at < CASE WHEN c.due_at IS NULL THEN @hour_ago ELSE @day_ago END
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
END;

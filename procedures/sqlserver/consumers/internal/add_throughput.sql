-- add_throughput: add to a consumer's figures of a type and a minute; the first call of a minute deletes old reports.
-- Arguments: @type, @consumer, @at (a time in that minute), @sent, @completed, @failed, @dead, @waited_ms, @busy_ms
-- Transaction: the caller's has locked the row of the consumer: no other call adds to this row
CREATE OR ALTER PROCEDURE mq_internal.add_throughput
    @type nvarchar(400), @consumer nvarchar(400), @at datetime2(7), @sent bigint, @completed bigint, @failed bigint,
    @dead bigint, @waited_ms bigint, @busy_ms bigint
AS
BEGIN
    DECLARE @base datetime2(7) = '2000-01-01', @minute datetime2(7), @now datetime2(7) = SYSUTCDATETIME();
    SET @minute = DATEADD(MINUTE, DATEDIFF(MINUTE, @base, @at), @base);
    -- Through the index, whose entry stays locked: forget_reports skips a locked entry, but would wait for a locked row.
    UPDATE t
    SET sent = t.sent + @sent, completed = t.completed + @completed, failed = t.failed + @failed, dead = t.dead + @dead,
        waited_ms = t.waited_ms + @waited_ms, busy_ms = t.busy_ms + @busy_ms
    FROM mq.report AS t WITH (UPDLOCK, ROWLOCK, FORCESEEK, INDEX (report_pk))
    WHERE t.minute = @minute AND t.type = @type AND t.consumer = @consumer;
    IF @@ROWCOUNT = 0
    BEGIN
        INSERT INTO mq.report (minute, sent, completed, failed, dead, waited_ms, busy_ms, type, consumer)
        VALUES (@minute, @sent, @completed, @failed, @dead, @waited_ms, @busy_ms, @type, @consumer);
        EXEC mq_internal.forget_reports @now;
    END;
END;

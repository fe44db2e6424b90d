-- take_due: claim the rows whose retry is due, if they exist and nobody has locked them.
-- Arguments: @name (of the polling table; the caller has locked its low-water mark), @key (of the batch), @size, @now,
--     @consumer
-- Returns: @count: rows claimed. Entries whose rows are gone are deleted; rows without attempts left become dead
CREATE OR ALTER PROCEDURE mq_internal.take_due
    @name nvarchar(400), @key uniqueidentifier, @size int, @now datetime2(7), @consumer nvarchar(400), @count int OUTPUT
AS
BEGIN
    DECLARE @ready nvarchar(max), @most int, @top int, @found int, @took int, @problem varchar(200), @detail nvarchar(2000);
    DECLARE @failed bigint, @dead bigint, @gone bigint;
    DECLARE @due TABLE (id bigint NOT NULL PRIMARY KEY);
    SELECT @ready = ready_value, @most = max_attempts, @count = 0 FROM mq.polled WHERE name = @name;
    WHILE @count < @size
    BEGIN
        DELETE FROM @due;
        SET @top = CASE WHEN @size - @count < 1000 THEN @size - @count ELSE 1000 END;
        INSERT INTO @due (id)
        SELECT TOP (@top) id FROM mq.polled_row WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (polled_row_due))
        WHERE name = @name AND state = 'N' AND run_at <= @now
        ORDER BY run_at, id;
        SET @found = @@ROWCOUNT;
        IF @found = 0
            BREAK;
        UPDATE e
        SET batch_key = @key, todo = CASE WHEN e.attempts >= @most THEN 'X' ELSE 'P' END, hit = 0, refused = 0, retry = NULL
        FROM @due AS d
        INNER JOIN mq.polled_row AS e WITH (UPDLOCK, ROWLOCK) ON e.id = d.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        EXEC mq_internal.write_rows @name, @key, @ready, 1, @problem OUTPUT, @detail OUTPUT;
        IF @problem IS NOT NULL
            EXEC mq_internal.raise_error @problem, @detail;
        EXEC mq_internal.forget_gone @name, @key;
        UPDATE e
        SET batch_key = NULL, todo = NULL
        FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
        WHERE e.batch_key = @key AND e.state = 'N' AND e.hit <> 1;
        EXEC mq_internal.fail_rows @name, @key, 1, @failed OUTPUT, @dead OUTPUT, @gone OUTPUT;
        UPDATE e
        SET state = 'A', attempts = e.attempts + 1, consumer = @consumer, todo = 'P'
        FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
        WHERE e.batch_key = @key AND e.state = 'N';
        EXEC mq_internal.take_new @name, @key, @took OUTPUT;
        SET @count = @count + @took;
        -- Locked rows stay due: the next round would find them again.
        IF @took < @found
            BREAK;
    END;
END;

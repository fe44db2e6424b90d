-- fail_rows: record failed attempts: each row waits for its next attempt, or is dead when no attempt is left.
-- Arguments: @name (of the polling table), @key (of the batch; its entries have todo F, L or X, or Z, which becomes F
--     or X; their retry is in seconds, NULL: 5 doubled for each attempt up to 3,600, -1: dead now), @touched (1:
--     write_rows was called)
-- Returns: @failed, @dead, @gone: counts of rows
CREATE OR ALTER PROCEDURE mq_internal.fail_rows
    @name nvarchar(400), @key uniqueidentifier, @touched bit, @failed bigint OUTPUT, @dead bigint OUTPUT,
    @gone bigint OUTPUT
AS
BEGIN
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @most int, @status nvarchar(300), @ready nvarchar(max), @took int = 1;
    DECLARE @problem varchar(200), @detail nvarchar(2000);
    DECLARE @done TABLE (id bigint NOT NULL PRIMARY KEY, state char(1) NOT NULL, milliseconds bigint NOT NULL);
    SELECT @failed = 0, @dead = 0, @gone = 0;
    SELECT @most = max_attempts, @status = status_column, @ready = ready_value FROM mq.polled WHERE name = @name;
    WHILE @took > 0
    BEGIN
        UPDATE TOP (1000) e
        SET todo = CASE WHEN e.retry = -1 OR e.attempts >= @most THEN 'X' ELSE 'F' END, hit = 0, refused = 0
        FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
        WHERE e.batch_key = @key AND e.todo = 'Z';
        SET @took = @@ROWCOUNT;
    END;
    IF @status IS NOT NULL
    BEGIN
        IF @touched = 0
            EXEC mq_internal.write_rows @name, @key, @ready, 0, @problem OUTPUT, @detail OUTPUT;
        IF @problem IS NOT NULL
            EXEC mq_internal.raise_error @problem, @detail;
        SET @took = 1;
        WHILE @took > 0
        BEGIN
            DELETE TOP (1000) e
            FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
            WHERE e.batch_key = @key AND e.todo IN ('F', 'L', 'X') AND e.hit <> 1;
            SELECT @took = @@ROWCOUNT, @gone = @gone + @@ROWCOUNT;
        END;
    END;
    SET @took = 1;
    WHILE @took > 0
    BEGIN
        DELETE FROM @done;
        -- Jitter: half to all of the delay. Rows that failed together are then not retried together. Store it in a table
        -- variable first: elsewhere each use might draw a new random number. When the table refuses error_value, the entry
        -- waits and the row dies at a later try. Without the entry, the row's status would make it claimable.
        INSERT INTO @done (id, state, milliseconds)
        SELECT TOP (1000) e.id, CASE WHEN e.todo = 'X' AND e.refused = 0 THEN 'E' ELSE 'N' END,
            CAST(CASE
                WHEN e.todo = 'L' THEN 0
                WHEN e.retry >= 0 THEN e.retry * 1000e0
                ELSE b.seconds * (500 + ABS(CHECKSUM(NEWID()) % 501))
            END AS bigint)
        FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
        CROSS APPLY (SELECT 5 * POWER(2e0, CASE WHEN e.attempts > 40 THEN 40 ELSE e.attempts - 1 END) AS seconds) AS a
        CROSS APPLY (SELECT CASE WHEN a.seconds > 3600 THEN 3600 ELSE a.seconds END AS seconds) AS b
        WHERE e.batch_key = @key AND e.todo IN ('F', 'L', 'X')
        ORDER BY e.id;
        SET @took = @@ROWCOUNT;
        UPDATE e
        SET state = d.state, batch_key = NULL,
            run_at = CASE d.state
                WHEN 'E' THEN @now
                ELSE DATEADD(MILLISECOND, d.milliseconds % 1000, DATEADD(SECOND, d.milliseconds / 1000, @now))
            END,
            attempts = e.attempts - CASE e.todo WHEN 'L' THEN 1 ELSE 0 END,
            active = CASE e.refused WHEN 1 THEN e.active ELSE 0 END,
            error = LEFT(e.error, 4000), todo = NULL, hit = 0, refused = 0, retry = NULL, row_json = NULL
        FROM @done AS d
        INNER JOIN mq.polled_row AS e WITH (ROWLOCK) ON e.id = d.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SELECT @failed = @failed + COUNT(*) FROM @done WHERE state = 'N';
        SELECT @dead = @dead + COUNT(*) FROM @done WHERE state = 'E';
    END;
END;

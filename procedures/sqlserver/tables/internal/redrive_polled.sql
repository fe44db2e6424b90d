-- redrive_polled: retry dead rows of a polling table, those that died first, with their attempts reset to 0.
-- Arguments: @name (as the caller gave it), @id (of one row; NULL: all), @size
-- Returns: @count: rows that will be retried
-- Transaction: waits for claims of the table and for transactions that have locked these rows
CREATE OR ALTER PROCEDURE mq_internal.redrive_polled
    @name nvarchar(400), @id bigint, @size bigint, @count bigint OUTPUT
AS
BEGIN
    DECLARE @key uniqueidentifier = NEWID(), @error nvarchar(max), @status nvarchar(300), @problem varchar(200), @detail nvarchar(2000);
    DECLARE @now datetime2(7), @took int = 1;
    SET @count = 0;
    EXEC mq_internal.lock_polled @name;
    EXEC mq_internal.require_rights @name, 1;
    SELECT @error = error_value, @status = status_column, @now = SYSUTCDATETIME() FROM mq.polled WHERE name = @name;
    WHILE @took > 0 AND @count < @size
    BEGIN
        UPDATE e
        SET batch_key = @key, todo = 'Y', hit = 0, refused = 0
        FROM (
            SELECT TOP (CASE WHEN @size - @count < 1000 THEN @size - @count ELSE 1000 END) id
            FROM mq.polled_row WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_due))
            WHERE name = @name AND state = 'E' AND id = COALESCE(@id, id) AND batch_key IS NULL
            ORDER BY run_at, id
        ) AS d
        INNER JOIN mq.polled_row AS e WITH (ROWLOCK) ON e.id = d.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SET @took = @@ROWCOUNT;
        IF @took > 0 AND @status IS NOT NULL
        BEGIN
            EXEC mq_internal.write_rows @name, @key, @error, 0, @problem OUTPUT, @detail OUTPUT;
            IF @problem IS NOT NULL
                EXEC mq_internal.raise_error @problem, @detail;
            DELETE e
            FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
            WHERE e.batch_key = @key AND e.todo = 'Y' AND e.hit <> 1;
            -- Rows whose new status the table refuses stay dead.
            UPDATE e
            SET todo = 'Z'
            FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
            WHERE e.batch_key = @key AND e.todo = 'Y' AND e.refused = 1;
        END;
        UPDATE e
        SET state = 'N', attempts = 0, run_at = @now, active = 0, batch_key = NULL, todo = NULL, hit = 0, row_json = NULL
        FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
        WHERE e.batch_key = @key AND e.todo = 'Y';
        SET @count = @count + @@ROWCOUNT;
    END;
    SET @took = 1;
    WHILE @took > 0
    BEGIN
        UPDATE TOP (1000) e
        SET batch_key = NULL, todo = NULL, hit = 0, refused = 0
        FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
        WHERE e.batch_key = @key;
        SET @took = @@ROWCOUNT;
    END;
END;

-- take_new: set the status of newly claimed rows to active_value.
-- Arguments: @name (of the polling table), @key (of the batch; its entries with todo P)
-- Returns: @count: rows claimed. Entries of rows that others have taken meanwhile are deleted; rows that the table
--     refuses have failed
CREATE OR ALTER PROCEDURE mq_internal.take_new
    @name nvarchar(400), @key uniqueidentifier, @count int OUTPUT
AS
BEGIN
    DECLARE @ready nvarchar(max), @active nvarchar(max), @took int = 1, @failed bigint, @dead bigint, @gone bigint;
    DECLARE @problem varchar(200), @detail nvarchar(2000);
    SELECT @ready = ready_value, @active = active_value, @count = 0 FROM mq.polled WHERE name = @name;
    IF @active IS NOT NULL
    BEGIN
        WHILE @took > 0
        BEGIN
            UPDATE TOP (1000) e
            SET todo = 'A', hit = 0, refused = 0
            FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
            WHERE e.batch_key = @key AND e.todo = 'P';
            SET @took = @@ROWCOUNT;
        END;
        EXEC mq_internal.write_rows @name, @key, @ready, 1, @problem OUTPUT, @detail OUTPUT;
        IF @problem IS NOT NULL
            EXEC mq_internal.raise_error @problem, @detail;
        SET @took = 1;
        WHILE @took > 0
        BEGIN
            DELETE TOP (1000) e
            FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
            WHERE e.batch_key = @key AND e.todo = 'A' AND e.hit <> 1;
            SET @took = @@ROWCOUNT;
        END;
        -- A row whose claim the table refuses must not stop the others.
        SET @took = 1;
        WHILE @took > 0
        BEGIN
            UPDATE TOP (1000) e
            SET todo = 'Z', retry = NULL
            FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
            WHERE e.batch_key = @key AND e.todo = 'A' AND e.refused = 1;
            SET @took = @@ROWCOUNT;
        END;
    END;
    SET @took = 1;
    WHILE @took > 0
    BEGIN
        UPDATE TOP (1000) e
        SET todo = NULL, hit = 0, active = CASE WHEN @active IS NULL THEN 0 ELSE 1 END
        FROM mq.polled_row AS e WITH (ROWLOCK, FORCESEEK, INDEX (polled_row_batch))
        WHERE e.batch_key = @key AND e.todo IN ('A', 'P');
        SELECT @took = @@ROWCOUNT, @count = @count + @@ROWCOUNT;
    END;
    EXEC mq_internal.fail_rows @name, @key, 0, @failed OUTPUT, @dead OUTPUT, @gone OUTPUT;
END;

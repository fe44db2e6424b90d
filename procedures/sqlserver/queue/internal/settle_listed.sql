-- settle_listed: record the failures of a list of outcomes, and make the messages ready again that it gives back.
-- Arguments: @key (the messages are in mq.claimed under it), @type, @consumer, @listed (retry as in fail_messages; -2: given
--     back)
CREATE OR ALTER PROCEDURE mq_internal.settle_listed
    @key uniqueidentifier, @type nvarchar(400), @consumer nvarchar(400), @listed mq.failures READONLY
AS
BEGIN
    DECLARE @step int = 1000, @took int = 1000, @last bigint = -1, @dead bigint, @count bigint = 0, @back uniqueidentifier = NEWID();
    DECLARE @failed mq.failures;
    WHILE @last IS NOT NULL
    BEGIN
        DELETE FROM @failed;
        INSERT INTO @failed (id, attempts, retry, error)
        SELECT TOP (@step) id, attempts, retry, error FROM @listed WHERE id > @last AND error IS NOT NULL ORDER BY id;
        SET @last = (SELECT MAX(id) FROM @failed);
        DELETE c
        FROM @failed AS f
        INNER JOIN mq.claimed AS c WITH (ROWLOCK) ON c.batch_key = @key AND c.id = f.id
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        IF @last IS NOT NULL
            EXEC mq_internal.fail_messages @type, @consumer, @failed, @dead OUTPUT;
    END;
    -- Under a key of their own, as put_back takes them.
    WHILE @took = @step
    BEGIN
        UPDATE TOP (@step) c
        SET batch_key = @back
        FROM @listed AS l
        INNER JOIN mq.claimed AS c WITH (ROWLOCK) ON c.batch_key = @key AND c.id = l.id
        WHERE l.retry = -2
        OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
        SET @took = @@ROWCOUNT;
        SET @count = @count + @took;
    END;
    IF @count > 0
        EXEC mq_internal.put_back @back, @type, -1, @count OUTPUT;
END;

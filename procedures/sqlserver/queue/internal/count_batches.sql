-- count_batches: count the messages of batches whose claims did not see max_active yet.
-- Arguments: @type, @wait (1: wait for batches that are being claimed, finished or extended; 0: skip them)
-- Returns: @count: how many messages the batches hold; the caller adds them to mq.limited
CREATE OR ALTER PROCEDURE mq_internal.count_batches
    @type nvarchar(400), @wait bit, @count int OUTPUT
AS
BEGIN
    DECLARE @n int = 0, @last int, @key uniqueidentifier, @counted bit;
    DECLARE @found TABLE (n int IDENTITY (1, 1) NOT NULL PRIMARY KEY, batch_key uniqueidentifier NOT NULL);
    SET @count = 0;
    -- Read the keys without locks, then lock each row by its primary key: see rescue.
    IF @wait = 1
        INSERT INTO @found (batch_key)
        SELECT batch_key FROM mq.batch WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (batch_lease))
        WHERE type = @type AND counted = 0;
    ELSE
        INSERT INTO @found (batch_key)
        SELECT batch_key FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK, INDEX (batch_lease))
        WHERE type = @type AND counted = 0;
    SET @last = @@ROWCOUNT;
    WHILE @n < @last
    BEGIN
        SELECT @n = @n + 1, @counted = NULL;
        SELECT @key = batch_key FROM @found WHERE n = @n;
        IF @wait = 1
            SELECT @counted = counted FROM mq.batch WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE batch_key = @key;
        ELSE
            SELECT @counted = counted FROM mq.batch WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE batch_key = @key;
        IF @counted = 0
        BEGIN
            UPDATE mq.batch SET counted = 1 WHERE batch_key = @key;
            SELECT @count = @count + COUNT(*) FROM mq.claimed WHERE batch_key = @key;
        END;
    END;
END;

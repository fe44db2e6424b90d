-- leave_batch: lock the batch that holds one message.
-- Returns: @type, @attempt, @consumer; raises lease_lost when the key does not hold the message
-- Transaction: calls for the same batch wait for each other
CREATE OR ALTER PROCEDURE mq_internal.leave_batch
    @id bigint, @key uniqueidentifier, @type nvarchar(400) OUTPUT, @attempt smallint OUTPUT,
    @consumer nvarchar(400) OUTPUT
AS
BEGIN
    DECLARE @counted bit, @in_groups bit;
    SELECT @type = NULL, @attempt = NULL;
    SELECT @type = type, @consumer = consumer, @counted = counted, @in_groups = in_groups
    FROM mq.batch WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)
    WHERE batch_key = @key;
    IF @type IS NOT NULL
        SELECT @attempt = attempt FROM mq.claimed WHERE batch_key = @key AND id = @id;
    IF @attempt IS NULL
        EXEC mq_internal.raise_error 'lease_lost',
            N'batch_key: does not hold message {}; roll back, do not retry, continue with the next claim', @id;
    IF @counted = 1 OR @in_groups = 1
        EXEC mq_internal.free_places @type, @key, @id, @counted, @in_groups;
    IF NOT EXISTS (SELECT * FROM mq.claimed WHERE batch_key = @key AND id <> @id)
        DELETE FROM mq.batch WHERE batch_key = @key;
END;

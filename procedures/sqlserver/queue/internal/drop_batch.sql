-- drop_batch: end a claim: delete the row of its batch; its messages stay in mq.claimed for the caller.
-- Returns: @type, @consumer and @lease_seconds of the claim; NULL when the lease was lost
-- Transaction: calls for the same batch wait for each other
CREATE OR ALTER PROCEDURE mq_internal.drop_batch
    @key uniqueidentifier, @type nvarchar(400) OUTPUT, @consumer nvarchar(400) OUTPUT, @lease_seconds int OUTPUT
AS
BEGIN
    DECLARE @counted bit, @in_groups bit;
    SET @type = NULL;
    SELECT @type = type, @consumer = consumer, @lease_seconds = lease_seconds, @counted = counted, @in_groups = in_groups
    FROM mq.batch WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)
    WHERE batch_key = @key;
    IF @type IS NULL
        RETURN;
    DELETE FROM mq.batch WHERE batch_key = @key;
    IF @counted = 1 OR @in_groups = 1
        EXEC mq_internal.free_places @type, @key, NULL, @counted, @in_groups;
END;

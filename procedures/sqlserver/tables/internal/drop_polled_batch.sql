-- drop_polled_batch: end a claim. The transaction that deletes its batch owns the entries, which stay for the caller.
-- Arguments: @batch_key (as the caller gave it), @keep (1: only lock the batch)
-- Returns: @key; @name of the polling table, NULL when the lease was lost
-- Transaction: waits for another call on the same batch
CREATE OR ALTER PROCEDURE mq_internal.drop_polled_batch
    @batch_key nvarchar(max), @keep bigint, @key uniqueidentifier OUTPUT, @name nvarchar(400) OUTPUT
AS
BEGIN
    SET @name = NULL;
    EXEC mq_internal.require_key @batch_key, @key OUTPUT;
    SELECT @name = name FROM mq.polled_batch WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE batch_key = @key;
    IF @name IS NOT NULL AND COALESCE(@keep, 0) = 0
        DELETE FROM mq.polled_batch WHERE batch_key = @key;
END;

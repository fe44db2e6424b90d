-- drop_polled_batch: end a claim. The transaction that deletes its batch owns the entries, which stay for the caller.
-- Arguments: @batch_key (as the caller gave it)
-- Returns: @key; @name of the polling table, NULL when the lease was lost
-- Transaction: waits for another call on the same batch
CREATE OR ALTER PROCEDURE mq_internal.drop_polled_batch
    @batch_key nvarchar(max), @key uniqueidentifier OUTPUT, @name nvarchar(400) OUTPUT
AS
BEGIN
    SET @name = NULL;
    EXEC mq_internal.require_key @batch_key, @key OUTPUT;
    SELECT @name = name FROM mq.polled_batch WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK) WHERE batch_key = @key;
    IF @name IS NOT NULL
        DELETE FROM mq.polled_batch WHERE batch_key = @key;
END;

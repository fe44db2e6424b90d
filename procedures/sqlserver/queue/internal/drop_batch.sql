-- drop_batch: end a claim and say what it was; what it held stays in mq.claimed for the caller.
-- Arguments:   @key
-- Returns:     @type (NULL when the batch was lost), @reader, @lease_seconds
-- Errors:      none
-- Transaction: joins the caller's; waits for another call on the same batch
-- Example:     EXEC mq.drop_batch @key, @type OUTPUT, @reader OUTPUT, @lease_seconds OUTPUT;

CREATE OR ALTER PROCEDURE mq.drop_batch
    @key uniqueidentifier,
    @type nvarchar(400) OUTPUT,
    @reader nvarchar(400) OUTPUT,
    @lease_seconds int OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @counted bit, @in_groups bit;
    SET @type = NULL;
    SELECT @type = type, @reader = reader, @lease_seconds = lease_seconds, @counted = counted, @in_groups = in_groups
    FROM mq.batch WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK)
    WHERE batch_key = @key;
    IF @type IS NULL
        RETURN;
    DELETE FROM mq.batch WHERE batch_key = @key;
    IF @counted = 1 OR @in_groups = 1
        EXEC mq.free_places @type, @key, NULL, @counted, @in_groups;
END;
GO

-- rescue: take back expired claims: their messages are new again, or dead when their attempts are used up.
-- Arguments:   @type, @batches (at most so many)
-- Returns:     @count: messages
-- Errors:      none
-- Transaction: joins the caller's, which is READ COMMITTED; passes over claims that are being finished or extended
-- Example:     EXEC mq.rescue N'email', 20, @count OUTPUT;

CREATE OR ALTER PROCEDURE mq.rescue
    @type nvarchar(400),
    @batches int,
    @count bigint OUTPUT
AS
BEGIN
    SET NOCOUNT, XACT_ABORT ON;
    DECLARE @now datetime2(7) = SYSUTCDATETIME(), @max_attempts int, @key uniqueidentifier, @reader nvarchar(400);
    DECLARE @step int = 1000, @took int, @dead bigint, @back bigint;
    DECLARE @spent mq.failures;
    SELECT TOP (1) @max_attempts = max_attempts FROM mq.queue WHERE type IN (@type, N'') ORDER BY LEN(type) DESC;
    SET @count = 0;
    WHILE @batches > 0
    BEGIN
        SET @key = NULL;
        SELECT TOP (1) @key = batch_key, @reader = reader
        FROM mq.batch WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE type = @type AND lease_until <= @now
        ORDER BY lease_until;
        IF @key IS NULL
            RETURN;
        DELETE FROM mq.batch WHERE batch_key = @key;
        SET @took = 1;
        WHILE @took > 0
        BEGIN
            DELETE FROM @spent;
            DELETE TOP (@step) c
            OUTPUT deleted.id, deleted.attempt, -1, N'lease expired: the consumer died or was too slow'
            INTO @spent (id, attempts, retry, error)
            FROM mq.claimed AS c WITH (ROWLOCK)
            INNER JOIN mq.message AS m ON m.id = c.id
            WHERE c.batch_key = @key AND c.attempt >= COALESCE(m.max_attempts, @max_attempts)
            OPTION (FORCE ORDER, LOOP JOIN);
            SET @took = @@ROWCOUNT;
            IF @took > 0
            BEGIN
                EXEC mq.fail_messages @type, @reader, @spent, @dead OUTPUT;
                SET @count = @count + @took;
            END;
        END;
        EXEC mq.put_back @key, @type, 0, @back OUTPUT;
        SET @count = @count + @back;
        SET @batches = @batches - 1;
    END;
END;
GO

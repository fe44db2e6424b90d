-- release_consumer: release all messages that a consumer holds, in all queues: they are ready again, and the attempts do
--                   not count.
-- Arguments:   @consumer (1 to 200 characters: the name that it passes to its claims)
-- Returns:     affected: messages released; 0 when the name holds none
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; skips claims that another call is finishing or extending
-- Example:     EXEC mq.release_consumer N'worker-1';
CREATE OR ALTER PROCEDURE mq.release_consumer
    @consumer nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @name nvarchar(400), @n int = 0, @last int;
    DECLARE @key uniqueidentifier, @type nvarchar(400), @holder nvarchar(400), @seconds int, @back bigint, @affected bigint = 0, @in_step bit;
    DECLARE @held TABLE (n int NOT NULL PRIMARY KEY, batch_key uniqueidentifier NOT NULL);
    BEGIN TRY
        EXEC mq_internal.require_name 'consumer', @consumer, 0;
        SET @name = @consumer;
        IF @own = 1
            BEGIN TRANSACTION;
        -- Read the keys without locks, then lock each row by its primary key: see rescue.
        INSERT INTO @held (n, batch_key)
        SELECT ROW_NUMBER() OVER (ORDER BY claimed_at, batch_key), batch_key
        FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)
        WHERE consumer = @name COLLATE Latin1_General_100_BIN2;
        SET @last = @@ROWCOUNT;
        WHILE @n < @last
        BEGIN
            SELECT @n = @n + 1, @key = NULL;
            SELECT @key = b.batch_key
            FROM @held AS h
            INNER JOIN mq.batch AS b WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) ON b.batch_key = h.batch_key
            WHERE h.n = @n
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            IF @key IS NULL
                CONTINUE;
            -- The messages of a handler's open transaction that has saved a step stay.
            EXEC mq_internal.is_held @key, @in_step OUTPUT;
            IF @in_step = 1
                CONTINUE;
            EXEC mq_internal.drop_batch @key, @type OUTPUT, @holder OUTPUT, @seconds OUTPUT;
            EXEC mq_internal.put_back @key, @type, -1, @back OUTPUT;
            SET @affected = @affected + @back;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @affected AS affected;
END;

-- claim_any: claim up to @size messages from the first type of a list that has something to claim.
-- Arguments:   @types (1 to 1,000 types, one per line; a type that contains a line feed or begins with a double quote is
--              written as a JSON string; rotate the list between calls, for fairness), @size (1 to 10,000; NULL: 1),
--              @consumer (NULL: the application name), @lease_seconds (NULL: the queue's)
-- Returns:     the messages of one type, as claim_batch returns them; no rows when no type has any
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; without one, each type that may have something is a transaction; never waits for
--              another claim
-- Example:     EXEC mq.claim_any N'email', 10, N'worker-1';
CREATE OR ALTER PROCEDURE mq.claim_any
    @types nvarchar(max),
    @size bigint = NULL,
    @consumer nvarchar(max) = NULL,
    @lease_seconds bigint = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @now datetime2(7) = SYSUTCDATETIME();
    DECLARE @n int = 0, @found int, @type nvarchar(400), @count int = 0;
    DECLARE @list TABLE (n int NOT NULL PRIMARY KEY, type nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL);
    BEGIN TRY
        EXEC mq_internal.require_types @types;
        EXEC mq_internal.require_range 'size', @size, 1, 10000;
        EXEC mq_internal.require_name 'consumer', @consumer, 1;
        EXEC mq_internal.require_range 'lease_seconds', @lease_seconds, 1, 86400;
        SELECT @size = COALESCE(@size, 1), @consumer = mq_internal.consumer_name(@consumer);
        INSERT INTO @list (n, type) SELECT n, type FROM mq_internal.read_types(@types);
        WHILE @count = 0 AND @n IS NOT NULL
        BEGIN
            SET @found = NULL;
            SELECT TOP (1) @found = l.n, @type = l.type
            FROM @list AS l
            CROSS APPLY mq_internal.has_work(l.type, @now, @now) AS w
            WHERE l.n > @n
            ORDER BY l.n
            OPTION (FORCE ORDER, LOOP JOIN, KEEPFIXED PLAN);
            SET @n = @found;
            IF @n IS NOT NULL
            BEGIN
                -- Nothing that this claim locks stays locked while the next type is searched.
                IF @own = 1
                    BEGIN TRANSACTION;
                EXEC mq_internal.claim @type, @size, @consumer, @lease_seconds, 0, NULL, 1, @count OUTPUT;
                IF @own = 1
                    COMMIT TRANSACTION;
            END;
        END;
        IF @count = 0
            EXEC mq_internal.return_batch NULL, NULL, NULL;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;

-- rescue_expired: make the messages of expired claims ready again, or dead-letter them when their attempts are used up;
--                 with @type, also unblock the stuck groups that queue_health reports.
-- Arguments:   @type (NULL: all types)
-- Returns:     affected: messages made ready or dead-lettered; a call rescues at most 1,000 claims per type
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; skips claims that another call is finishing or extending
-- Example:     EXEC mq.rescue_expired N'email';
CREATE OR ALTER PROCEDURE mq.rescue_expired
    @type nvarchar(max) = NULL
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED; -- for this call only: SERIALIZABLE does not allow READPAST
    DECLARE @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @next nvarchar(400), @rescued bigint, @count bigint = 0, @grouped bit;
    DECLARE @heads mq.items;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 1;
        IF @own = 1
            BEGIN TRANSACTION;
        SET @next = @type;
        IF @type IS NULL
            SELECT TOP (1) @next = type FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) ORDER BY type;
        WHILE @next IS NOT NULL
        BEGIN
            EXEC mq_internal.rescue @next, 1000, @rescued OUTPUT;
            SET @count = @count + @rescued;
            IF @type IS NULL
                SET @next = (
                    SELECT TOP (1) type FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE type > @next ORDER BY type
                );
            ELSE
                SET @next = NULL;
        END;
        SET @next = @type;
        SELECT @grouped = grouped FROM mq_internal.policy(@next);
        IF @type IS NOT NULL AND @grouped = 1
        BEGIN
            INSERT INTO @heads (id, attempts) SELECT TOP (1000) id, 0 FROM mq_internal.stuck_groups(@next) ORDER BY id;
            IF @@ROWCOUNT > 0
                EXEC mq_internal.issue_tickets @next, @heads, 1;
        END;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS affected;
END;

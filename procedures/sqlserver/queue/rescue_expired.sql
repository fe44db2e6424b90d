-- rescue_expired: make the messages of expired claims ready again, or dead-letter them when their attempts are used up;
--                 also unblock the stuck groups that queue_health reports.
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
    DECLARE @next nvarchar(400), @rescued bigint, @count bigint = 0;
    DECLARE @heads mq.items;
    BEGIN TRY
        EXEC mq_internal.require_name 'type', @type, 1;
        IF @own = 1
            BEGIN TRANSACTION;
        SET @next = COALESCE(@type, (SELECT MIN(type) FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK)));
        WHILE @next IS NOT NULL
        BEGIN
            EXEC mq_internal.rescue @next, 1000, @rescued OUTPUT;
            SET @count = @count + @rescued;
            SET @next = (
                SELECT MIN(type) FROM mq.batch WITH (READPAST, ROWLOCK, READCOMMITTEDLOCK) WHERE @type IS NULL AND type > @next
            );
        END;
        SET @next = COALESCE(@type, (SELECT MIN(type) FROM mq.queue WITH (READUNCOMMITTED) WHERE grouped = 1));
        WHILE @next IS NOT NULL
        BEGIN
            DELETE FROM @heads;
            INSERT INTO @heads (id, attempts)
            SELECT TOP (1000) s.id, 0
            FROM mq_internal.policy(@next) AS p CROSS APPLY mq_internal.stuck_groups(@next) AS s
            WHERE p.grouped = 1
            ORDER BY s.id;
            EXEC mq_internal.issue_tickets @next, @heads, 1;
            SET @next = (SELECT MIN(type) FROM mq.queue WITH (READUNCOMMITTED) WHERE grouped = 1 AND @type IS NULL AND type > @next);
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

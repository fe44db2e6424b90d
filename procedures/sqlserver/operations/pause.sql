-- pause: claims return nothing until resume; what is claimed can be finished; sending goes on.
-- Arguments:   @type
-- Returns:     count (1: it was running, 0: it was paused already)
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's; calls for one type wait for each other, and claims of the type for the end of the transaction
--              where the database does not keep versions
-- Example:     EXEC mq.pause N'email';

CREATE OR ALTER PROCEDURE mq.pause
    @type nvarchar(max)
AS
BEGIN
    SET NOCOUNT, XACT_ABORT, CONCAT_NULL_YIELDS_NULL ON;
    SET ROWCOUNT 0; -- a SET ROWCOUNT of the session would apply here too
    -- For this call only: the call needs the current rows, and a snapshot shows old ones.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @name nvarchar(400), @own bit = CASE WHEN @@TRANCOUNT = 0 THEN 1 ELSE 0 END;
    DECLARE @count bigint;
    BEGIN TRY
        EXEC mq.require_name 'type', @type, 0;
        SET @name = @type;
        IF @own = 1
            BEGIN TRANSACTION;
        -- The range is locked as well: of two first calls for a type the second waits here, and finds the row then.
        IF NOT EXISTS (SELECT * FROM mq.queue WITH (UPDLOCK, HOLDLOCK, ROWLOCK) WHERE type = @name)
            INSERT INTO mq.queue (type, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered,
                notify, max_active, rate, rate_seconds, group_max_active, group_rate, group_rate_seconds, grouped)
            SELECT @name, lease_seconds, max_attempts, backoff_seconds, backoff_max_seconds, on_complete, ordered, notify,
                max_active, rate, rate_seconds, group_max_active, group_rate, group_rate_seconds, grouped
            FROM mq.policy(@name);
        UPDATE mq.queue SET paused = 1 WHERE type = @name AND paused = 0;
        SET @count = @@ROWCOUNT;
        IF @own = 1
            COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @own = 1 AND XACT_STATE() <> 0
            ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @count AS count;
END;
GO
